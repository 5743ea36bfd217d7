// The board, whose turn it is, and what a seat may choose. `state` is STATE of docs/record.md,
// `rules` the rules configuration; comments name the paragraphs of docs/rules.md.

export const SEATS = 4;
export const GUARDS = 4;
export const PIECES = 5;
export const NOBLE = 4;
export const LOOP = 68;
export const QUARTER = 17;
export const YARD = -1;
export const HOME_PATH = 68;
export const MIDPOINT = 34;
export const TURN_OFF = 63;
export const CASTLES = [7, 12, 24, 29, 41, 46, 58, 63];
export const CHECKPOINTS = 12;
export const HOME_BIT = 11;

/** Each loop offset's record bit, -1 where there is none (rules 4.1). */
export const CHECKPOINT_AT = new Array(LOOP).fill(-1);
[0, ...CASTLES, QUARTER, 3 * QUARTER].forEach((offset, bit) => (CHECKPOINT_AT[offset] = bit));

export const FORWARD = 'forward';
export const BACKWARD = 'backward';
export const DIRECTIONS = [FORWARD, BACKWARD];

/** Home's position code (rules 1.8). */
export const homeOf = (rules) => HOME_PATH + rules.home_path_tiles;

/** The absolute tile of a seat's loop offset (rules 1.3). */
export const tile = (seat, offset) => (offset + QUARTER * seat) % LOOP;

/** The number that a player is shown for a loop offset (rules 1.4). */
export function tileNumber(offset, direction, arriving = false) {
  if (direction === FORWARD) return offset + 1;
  return offset === 0 && !arriving ? 1 : LOOP + 1 - offset;
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** A seat's total score (rules 4). */
export const totalOf = (state, seat) =>
  sum(state.progression[seat]) + state.combat[seat] + state.bonus[seat];

export const hasFinished = (state, seat, rules) =>
  state.position[seat].every((position) => position === homeOf(rules));

/** Seats in the order of (turns taken, number), finished ones or the others. */
function inOrder(state, rules, finished) {
  const seats = [0, 1, 2, 3].filter((seat) => hasFinished(state, seat, rules) === finished);
  return seats.sort((a, b) => state.turns_taken[a] - state.turns_taken[b] || a - b);
}

export const finishOrder = (state, rules) => inOrder(state, rules, true);

/** The seat whose roll is due, null when the match is over (rules 3 and 5). */
export function seatToMove(state, rules) {
  const waiting = inOrder(state, rules, false);
  return waiting.length === 0 || state.clock_seconds === 0 ? null : waiting[0];
}

/** How many dice a seat rolls (rules 3.1.1). */
export function diceCount(state, seat, rules) {
  const held = sum(state.store[seat]);
  return rules.dice.find(([upTo]) => held <= upTo)[1];
}

function isGrace(state, seat, rolled) {
  if (state.turns_taken[seat] === 0 || rolled.length === 0) return false; // 3.1.2
  const [first, second] = rolled;
  return first === 6 || second === 6 || first + second === 6; // with one die the sum is NaN
}

function isForcedGrace(state, seat, rules) {
  if (state.turns_taken[seat] === 0 || state.credits[seat] > 0) return false; // 3.1.4
  const guards = state.position[seat].slice(0, GUARDS);
  const inYard = guards.filter((position) => position === YARD).length;
  const inHome = guards.filter((position) => position === homeOf(rules)).length;
  return inYard > 0 && inYard + inHome === GUARDS;
}

/**
 * The decision that a roll leaves the seat to move with: `state` with the roll in its store and
 * the credits earned. The state given is not changed.
 */
export function receive(state, rolled, rules) {
  const seat = seatToMove(state, rules);
  if (seat === null) throw new RangeError('the match is over');
  const due = diceCount(state, seat, rules);
  if (rolled.length !== due) throw new RangeError(`${rolled.length} dice; ${due} are due`);
  const grace = isGrace(state, seat, rolled) || isForcedGrace(state, seat, rules);
  const room = rules.max_credits - state.credits[seat]; // 3.1.3
  const creditsEarned = grace ? Math.min(rules.credits_per_grace, room) : 0;
  const after = structuredClone(state);
  for (const value of rolled) after.store[seat][value - 1] += 1;
  after.credits[seat] += creditsEarned;
  return { state: after, seat, rolled, creditsEarned, rules };
}

/** For each Guard whether it may be given rolls (rules 3.2). */
export function legalGuards({ state, seat, rules }) {
  let credits = state.credits[seat];
  return state.position[seat].slice(0, GUARDS).map((position) => {
    if (position === YARD) return credits-- > 0;
    return position !== homeOf(rules);
  });
}

export const nobleMayMove = ({ state, seat, rules }) =>
  state.position[seat][NOBLE] !== homeOf(rules);

/** The stored rolls of a decision, ascending. */
export const storedRolls = ({ state, seat }) =>
  state.store[seat].flatMap((count, index) => new Array(count).fill(index + 1));
