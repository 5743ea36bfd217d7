// What a policy sees and may choose, in the encodings `turn` and `steps` (docs/frontends.md).
// A decision is what `receive` in game.js returns; a turn is written as the match record has it.

import {
  BACKWARD,
  CASTLES,
  CHECKPOINTS,
  DIRECTIONS,
  FORWARD,
  GUARDS,
  HOME_PATH,
  LOOP,
  MIDPOINT,
  PIECES,
  QUARTER,
  SEATS,
  TURN_OFF,
  YARD,
  homeOf,
  legalGuards,
  nobleMayMove,
  storedRolls,
  totalOf,
} from './game.js';

export const OBSERVATION_VERSION = 1;
export const NOBLE_CHOICES = 13;
const PLANS = 2 * NOBLE_CHOICES;
const END_TURN = PLANS + 6 * GUARDS;
const STEP_ACTIONS = END_TURN + 1;

const f32 = Math.fround;

// --- The observation

/** Steps to Home in one direction, from a position code. */
export function stepsHome(position, past, direction, rules) {
  const home = homeOf(rules);
  if (position >= HOME_PATH) return home - position;
  const fromYard = position === YARD ? 1 : 0;
  const offset = Math.max(position, 0);
  const forward = direction === FORWARD;
  const passes = forward ? offset <= MIDPOINT || offset > TURN_OFF : offset >= MIDPOINT;
  const toTurnOff = forward ? (TURN_OFF - offset + LOOP) % LOOP : offset;
  return fromYard + toTurnOff + (past || passes ? 0 : LOOP) + (home - HOME_PATH + 1);
}

function longestWay(rules) {
  let longest = 0;
  for (let offset = 0; offset < LOOP; offset += 1) {
    for (const direction of DIRECTIONS) {
      longest = Math.max(longest, stepsHome(offset, false, direction, rules));
    }
  }
  return longest;
}

/** The seven numbers of a piece; `seen` is how many seats after the acting one its seat sits. */
export function placeFeatures(seen, past, position, rules, longest = longestWay(rules)) {
  const homePath = homeOf(rules) - HOME_PATH + 1;
  const onLoop = position > YARD && position < LOOP;
  const angle = (2 * Math.PI * ((position + QUARTER * seen) % LOOP)) / LOOP;
  const onCastle = rules.castles_protect && CASTLES.includes(position);
  return [
    position === YARD ? 1 : 0,
    f32(Math.max(0, position - HOME_PATH + 1) / homePath),
    onLoop ? f32(Math.cos(angle)) : 0,
    onLoop ? f32(Math.sin(angle)) : 0,
    f32(stepsHome(position, past, FORWARD, rules) / longest),
    f32(stepsHome(position, past, BACKWARD, rules) / longest),
    position <= 0 || position >= HOME_PATH || onCastle ? 1 : 0,
  ];
}

const squash = (points, scale) => f32(f32(points) / f32(f32(Math.abs(points)) + scale));
const share = (count, of) => f32(count * f32(1 / of));

/** The sections that both encodings share, by name and in order. */
export function sections(decision) {
  const { state, seat: viewer, rules } = decision;
  const seats = Array.from({ length: SEATS }, (_, seen) => (viewer + seen) % SEATS);
  const longest = longestWay(rules);
  const board = seats.flatMap((seat, seen) =>
    state.position[seat].flatMap((position, piece) =>
      placeFeatures(seen, state.midpoint[seat][piece] === 1, position, rules, longest),
    ),
  );
  const checkpoints = [];
  for (let piece = 0; piece < PIECES; piece += 1) {
    for (let bit = 0; bit < CHECKPOINTS; bit += 1) {
      checkpoints.push((state.checkpoints[viewer][piece] >> bit) & 1);
    }
  }
  return {
    board,
    midpoint: seats.flatMap((seat) => state.midpoint[seat]),
    checkpoints,
    progression: seats.flatMap((seat) => state.progression[seat].map((p) => squash(p, 200))),
    roll_store: seats.flatMap((seat) =>
      state.store[seat].map((count) => share(count, rules.store_capacity)),
    ),
    exit_credits: seats.map((seat) => share(state.credits[seat], rules.max_credits)),
    scores: seats.flatMap((seat) => [
      squash(totalOf(state, seat), 1000),
      squash(state.combat[seat], 1000),
    ]),
    legal_guards: legalGuards(decision).map(Number),
    clock: [f32(state.clock_seconds / rules.clock_seconds)],
  };
}

const flat = (decision, last) =>
  Float32Array.from([...Object.values(sections(decision)).flat(), ...last]);

/** The flat observation of the encoding `turn`. */
export const observeTurn = (decision) => flat(decision, rollsSection(decision));

export function rollsSection(decision) {
  const section = new Array(decision.rules.store_capacity).fill(0);
  storedRolls(decision).forEach((value, index) => (section[index] = f32(value * f32(1 / 6))));
  return section;
}

/** The flat observation of the encoding `steps`, given what is chosen so far. */
export const observeSteps = (decision, draft) => flat(decision, planSection(decision, draft));

export function planSection({ state, seat, rules }, draft) {
  const section = new Array(14).fill(0);
  if (draft.planned) {
    section[DIRECTIONS.indexOf(draft.direction)] = 1;
    const { steps, when } = draft.noble;
    section[when === 'after' ? 3 : 2] = f32(steps * f32(1 / 6));
  }
  draft.guards.forEach((values, guard) => {
    const total = values.reduce((sum, value) => sum + value, 0);
    section[4 + guard] = squash(total, 12);
  });
  draft.left.forEach((left, index) => {
    // As the engine computes it: the share is written anew only when a roll of it is given.
    const untouched = left === state.store[seat][index];
    section[8 + index] = untouched
      ? share(left, rules.store_capacity)
      : f32(left / rules.store_capacity);
  });
  return section;
}

// --- Masks and what actions mean

const nobleMask = (decision) =>
  Array.from({ length: NOBLE_CHOICES }, (_, choice) => choice === 0 || nobleMayMove(decision));

/** Direction and Noble of a plan; what the Noble may not do becomes "stays". */
function planOf(decision, direction, noble) {
  const moves = noble > 0 && nobleMayMove(decision);
  return {
    direction: DIRECTIONS[direction],
    noble: {
      steps: moves ? (noble <= 6 ? noble : noble - 6) : 0,
      when: moves && noble > 6 ? 'after' : 'before',
    },
  };
}

/** How many choices each part of a `turn` action has. */
export const turnParts = (rules) => [2, NOBLE_CHOICES, ...new Array(rules.store_capacity).fill(5)];

/** The mask of `turn`, the parts one after the other. */
export function turnMask(decision) {
  const guards = legalGuards(decision);
  const held = storedRolls(decision).length;
  const mask = [true, true, ...nobleMask(decision)];
  for (let roll = 0; roll < decision.rules.store_capacity; roll += 1) {
    mask.push(true, ...guards.map((legal) => legal && roll < held));
  }
  return mask;
}

/** The turn that an action of `turn` means; parts that are not legal mean the passive choice. */
export function decodeTurn(decision, [direction, noble, ...choices]) {
  const legal = legalGuards(decision);
  const guards = [[], [], [], []];
  storedRolls(decision).forEach((value, roll) => {
    const guard = choices[roll] - 1;
    if (guard >= 0 && legal[guard]) guards[guard].push(value);
  });
  return { ...planOf(decision, direction, noble), guards };
}

/** A turn of `steps` of which nothing is chosen yet. */
export const startDraft = ({ state, seat }) => ({
  planned: false,
  direction: FORWARD,
  noble: { steps: 0, when: 'before' },
  guards: [[], [], [], []],
  left: [...state.store[seat]],
});

/** The mask of `steps`. */
export function stepsMask(decision, draft) {
  const mask = new Array(STEP_ACTIONS).fill(false);
  if (!draft.planned) {
    nobleMask(decision).forEach((legal, choice) => {
      mask[choice] = legal;
      mask[NOBLE_CHOICES + choice] = legal;
    });
    return mask;
  }
  legalGuards(decision).forEach((legal, guard) =>
    draft.left.forEach((left, index) => (mask[PLANS + 6 * guard + index] = legal && left > 0)),
  );
  mask[END_TURN] = true;
  return mask;
}

/** Add an action of `steps` to a draft; returns whether the turn is complete. */
export function takeStep(decision, draft, action) {
  if (!draft.planned) {
    const inRange = action < PLANS ? action : 0; // anything else: forward, the Noble stays
    const direction = Math.floor(inRange / NOBLE_CHOICES);
    Object.assign(draft, planOf(decision, direction, inRange % NOBLE_CHOICES), { planned: true });
    return false;
  }
  if (!stepsMask(decision, draft)[action] || action === END_TURN) return true;
  const guard = Math.floor((action - PLANS) / 6);
  const value = ((action - PLANS) % 6) + 1;
  draft.left[value - 1] -= 1;
  draft.guards[guard].push(value);
  draft.guards[guard].sort((a, b) => a - b);
  return false;
}

/** The turn of a complete draft. */
export const turnOf = ({ direction, noble, guards }) => ({ direction, noble, guards });
