// Reproduces every test vector, or those in the files that are named:
//
//   node check-vectors.mjs [FOLDER [FILE...]]
//
// Exit code 0 if all agree; 1, with the first differences of each file, if one does not.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { mix, roll } from './dice.js';
import {
  BACKWARD,
  CHECKPOINT_AT,
  DIRECTIONS,
  FORWARD,
  diceCount,
  receive,
  seatToMove,
  tile,
  tileNumber,
} from './game.js';
import {
  decodeTurn,
  placeFeatures,
  planSection,
  rollsSection,
  sections,
  startDraft,
  stepsMask,
  takeStep,
  turnMask,
  turnOf,
} from './observation.js';
import { Policy, maskedChoice } from './policy.js';
import { play, reasonAgainst } from './referee.js';

const ANGLE = 1e-6; // cosine and sine: languages differ in the last digit
const LOGIT = 1e-4; // or a millionth of the largest: so do libraries for networks
const SHOWN = 5;

const given = process.argv[2] ?? fileURLToPath(new URL('../../vectors', import.meta.url));
const text = (name) => readFile(`${given}/${name}`, 'utf8');
const json = async (name) => JSON.parse(await text(name));

// --- Comparing

/** Counts what is compared, and keeps the differences of one file. */
class Report {
  constructor(name) {
    this.name = name;
    this.compared = 0;
    this.differences = [];
  }

  /** Compare two values to the last digit, or numbers within `tolerance`. */
  equal(where, found, expected, tolerance = 0) {
    this.compared += 1;
    const difference = differenceOf(found, expected, tolerance);
    if (difference !== null) this.differences.push(`${where}${difference}`);
  }

  close() {
    const { name, compared, differences } = this;
    if (compared === 0) differences.push('nothing was compared');
    for (const each of differences.slice(0, SHOWN)) console.error(`${name}: ${each}`);
    if (differences.length > SHOWN) {
      console.error(`${name}: and ${differences.length - SHOWN} more`);
    }
    console.log(`${name}: ${compared - Math.min(compared, differences.length)} of ${compared}`);
    return differences.length === 0;
  }
}

function differenceOf(found, expected, tolerance) {
  if (typeof found === 'number' && typeof expected === 'number') {
    const same = found === expected || Math.abs(found - expected) <= tolerance;
    return same ? null : `: is ${found}, expected ${expected}`;
  }
  const isObject = (value) => typeof value === 'object' && value !== null;
  if (!isObject(found) || !isObject(expected)) {
    return found === expected ? null : `: is ${found}, expected ${expected}`;
  }
  const keys = new Set([...Object.keys(expected), ...Object.keys(found)]);
  for (const key of keys) {
    const name = Array.isArray(expected) ? `[${key}]` : `.${key}`;
    if (!(key in found)) return `${name}: is missing`;
    if (!(key in expected)) return `${name}: must not be there`;
    const difference = differenceOf(found[key], expected[key], tolerance);
    if (difference !== null) return `${name}${difference}`;
  }
  return null;
}

const bits = (mask) => mask.map((legal) => (legal ? '1' : '0')).join('');
const legalOf = (mask, parts) => {
  let start = 0;
  return parts.every(([choice, size]) => mask[(start += size) - size + choice]);
};

// --- The files

/** Python's `json.dumps(..., sort_keys=True)`, from which the digest of rules is made. */
function sorted(value) {
  if (Array.isArray(value)) return `[${value.map(sorted).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}: ${sorted(value[key])}`).join(', ')}}`;
}

function checkRules(report, content) {
  for (const [mode, { digest, rules }] of Object.entries(content)) {
    const found = createHash('sha256').update(sorted(rules)).digest('hex').slice(0, 16);
    report.equal(mode, found, digest);
  }
}

function checkDice(report, content) {
  for (const [word, mixed] of content.mix) {
    const found = `0x${mix(BigInt(word)).toString(16).padStart(16, '0')}`;
    report.equal(`mix of ${word}`, found, mixed);
  }
  for (const { seed, seat, turn, dice } of content.dice) {
    const where = `dice of seed ${seed}, seat ${seat}, turn ${turn}`;
    report.equal(where, roll(seed, seat, turn, dice.length), dice);
  }
}

function checkBoard(report, content, rulesOf) {
  const offsets = Array.from({ length: 68 }, (_, offset) => offset);
  content.tiles.forEach((tiles, seat) =>
    report.equal(
      `tiles of seat ${seat}`,
      offsets.map((offset) => tile(seat, offset)),
      tiles,
    ),
  );
  const number = (direction) => offsets.map((offset) => tileNumber(offset, direction));
  report.equal('forward', number(FORWARD), content.forward);
  report.equal('backward', number(BACKWARD), content.backward);
  report.equal('arriving', tileNumber(0, BACKWARD, true), content.arriving);
  report.equal('checkpoints', CHECKPOINT_AT, content.checkpoints);
  for (const [mode, tables] of Object.entries(content.places)) {
    tables.forEach((table, index) => {
      const [seen, past] = [Math.floor(index / 2), index % 2 === 1];
      table.forEach((expected, row) => {
        const where = `${mode}: seen ${seen}, midpoint ${index % 2}, position ${row - 1}`;
        equalPlaces(report, where, placeFeatures(seen, past, row - 1, rulesOf(mode)), expected);
      });
    });
  }
}

/** Numbers of a vector are written with the fewest digits that mean the same float32. */
const floats = (numbers) => numbers.map(Math.fround);

/** Places are equal to the last digit, but for cosine and sine. */
function equalPlaces(report, where, found, expected) {
  const isAngle = (index) => index % 7 === 2 || index % 7 === 3;
  const only = (numbers, wanted) => numbers.filter((_, index) => isAngle(index) === wanted);
  report.equal(`${where}, without angles`, only(found, false), only(floats(expected), false));
  report.equal(`${where}, angles`, only(found, true), only(floats(expected), true), ANGLE);
}

function checkTurns(report, content, rulesOf) {
  for (const scene of content.turns) {
    const rules = rulesOf(scene.mode);
    const where = `${scene.rule}, ${scene.what} (${scene.mode})`;
    const decision = receive(scene.state, scene.rolled, rules);
    report.equal(`${where}: seat`, decision.seat, scene.seat);
    report.equal(`${where}: credits_earned`, decision.creditsEarned, scene.credits_earned);
    const reason = reasonAgainst(decision, scene.turn);
    report.equal(`${where}: legal`, reason === null, scene.legal);
    if (!scene.legal || reason !== null) continue;
    const { events, after, next, result } = play(decision, scene.turn);
    report.equal(`${where}: events`, events, scene.events);
    report.equal(`${where}: after`, after, scene.after);
    report.equal(`${where}: next`, next, scene.next);
    report.equal(`${where}: result`, result, scene.result);
  }
}

/** A whole match from its header alone: dice of its seed, turns played, states, the result. */
function checkMatch(report, lines) {
  const [header, ...rest] = lines
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  let { start: state, rules } = header;
  let end;
  for (const line of rest) {
    if (line.result !== undefined) {
      report.equal('result', end, line.result);
      continue;
    }
    const where = `turn ${line.turn}`;
    const seat = seatToMove(state, rules);
    report.equal(`${where}: seat`, seat, line.seat);
    const dice = roll(header.seed, seat, state.turns_taken[seat], diceCount(state, seat, rules));
    report.equal(`${where}: rolled`, dice, line.rolled);
    const decision = receive(state, line.rolled, rules);
    report.equal(`${where}: credits_earned`, decision.creditsEarned, line.credits_earned);
    const { direction, noble, guards } = line;
    report.equal(`${where}: legal`, reasonAgainst(decision, { direction, noble, guards }), null);
    const played = play(decision, { direction, noble, guards });
    report.equal(`${where}: events`, played.events, line.events);
    report.equal(`${where}: after`, played.after, line.after);
    state = played.after;
    end = played.result;
  }
}

function checkPositions(report, content, rulesOf) {
  const rules = rulesOf(content.mode);
  for (const position of content.positions) {
    const where = position.from;
    const decision = receive(position.state, position.rolled, rules);
    report.equal(`${where}: seat`, decision.seat, position.seat);
    report.equal(`${where}: credits_earned`, decision.creditsEarned, position.credits_earned);
    report.equal(`${where}: store`, decision.state.store[decision.seat], position.store);
    report.equal(`${where}: credits`, decision.state.credits[decision.seat], position.credits);
    const found = sections(decision);
    report.equal(`${where}: sections`, Object.keys(found), Object.keys(position.sections));
    for (const [name, expected] of Object.entries(position.sections)) {
      if (name === 'board') equalPlaces(report, `${where}: board`, found.board, expected);
      else report.equal(`${where}: ${name}`, found[name], floats(expected));
    }
    checkLayout(report, where, content.layouts.turn, { ...found, rolls: rollsSection(decision) });
    checkTurnActions(report, where, decision, position.turn);
    position.steps.forEach((steps, index) =>
      checkSteps(report, `${where}: steps[${index}]`, decision, steps, content.layouts.steps),
    );
  }
}

function checkLayout(report, where, layout, parts) {
  let start = 0;
  const found = Object.entries(parts).map(([name, part]) => {
    start += part.length;
    return [name, start - part.length, part.length];
  });
  report.equal(`${where}: layout`, found, layout);
}

function checkTurnActions(report, where, decision, expected) {
  const mask = turnMask(decision);
  report.equal(`${where}: rolls`, rollsSection(decision), floats(expected.rolls));
  report.equal(`${where}: mask of turn`, bits(mask), expected.mask);
  for (const { action, legal, turn } of expected.actions) {
    const sizes = [2, 13, ...new Array(action.length - 2).fill(5)];
    const found = legalOf(
      mask,
      action.map((choice, part) => [choice, sizes[part]]),
    );
    report.equal(`${where}: action [${action}]: legal`, found, legal);
    report.equal(`${where}: action [${action}]`, decodeTurn(decision, action), turn);
  }
}

function checkSteps(report, where, decision, { seen, turn }, layout) {
  const draft = startDraft(decision);
  let complete = false;
  seen.forEach(({ plan, mask, action, legal }, index) => {
    const at = `${where}.seen[${index}]`;
    const found = stepsMask(decision, draft);
    report.equal(`${at}: plan`, planSection(decision, draft), floats(plan));
    report.equal(`${at}: mask`, bits(found), mask);
    report.equal(`${at}: legal`, found[action], legal);
    report.equal(`${at}: complete before`, complete, false);
    complete = takeStep(decision, draft, action);
  });
  report.equal(`${where}: complete`, complete, true);
  report.equal(`${where}: turn`, turnOf(draft), turn);
  checkLayout(report, where, layout, { ...sections(decision), plan: planSection(decision, draft) });
}

function checkChoices(report, choices) {
  for (const { what, nvec, logits, mask, action } of choices) {
    const legal = [...mask].map((each) => each === '1');
    report.equal(what, maskedChoice(Float32Array.from(logits), legal, nvec), action);
  }
}

async function checkPolicy(report, expected, positions, { rules, digest }) {
  const model = await readFile(`${given}/${expected.file}`);
  const manifest = await json(expected.manifest);
  const sha256 = createHash('sha256').update(model).digest('hex');
  report.equal(`${expected.file}: sha256`, sha256, manifest.sha256);
  const policy = await Policy.load(new Uint8Array(model), manifest, rules, digest);
  for (const { position, steps, turn } of expected.decisions) {
    const where = `${expected.file}: position ${position}`;
    const { state, rolled } = positions[position];
    let step = 0;
    const found = await policy.choose(receive(state, rolled, rules), (logits, action) => {
      const { logits: right, action: rightAction } = steps[step] ?? { logits: [], action: [] };
      const largest = Math.max(...right.map(Math.abs));
      const tolerance = Math.max(LOGIT, 1e-6 * largest);
      report.equal(`${where}, step ${step}: logits`, Array.from(logits), right, tolerance);
      const chosen = expected.encoding === 'turn' ? action : action[0];
      report.equal(`${where}, step ${step}: action`, chosen, rightAction);
      step += 1;
    });
    report.equal(`${where}: steps`, step, steps.length);
    report.equal(`${where}: turn`, found, turn);
  }
}

// --- All of them

const ruleFile = await json('rules.json');
const rulesOf = (mode) => ruleFile[mode].rules;
const positions = {
  journey: await json('positions-journey.json'),
  brawl: await json('positions-brawl.json'),
};
const policies = await json('policies.json');

const checks = {
  'rules.json': (report) => checkRules(report, ruleFile),
  'dice.json': async (report) => checkDice(report, await json('dice.json')),
  'board.json': async (report) => checkBoard(report, await json('board.json'), rulesOf),
  'turns.json': async (report) => checkTurns(report, await json('turns.json'), rulesOf),
  'match-journey.jsonl': async (report) => checkMatch(report, await text('match-journey.jsonl')),
  'match-brawl.jsonl': async (report) => checkMatch(report, await text('match-brawl.jsonl')),
  'positions-journey.json': (report) => checkPositions(report, positions.journey, rulesOf),
  'positions-brawl.json': (report) => checkPositions(report, positions.brawl, rulesOf),
  'policies.json': async (report) => {
    checkChoices(report, policies.choices);
    for (const each of policies.policies) {
      await checkPolicy(report, each, positions[each.mode].positions, ruleFile[each.mode]);
    }
  },
};

const named = process.argv.slice(3);
let agree = true;
for (const name of named.length > 0 ? named : Object.keys(checks)) {
  const report = new Report(name);
  try {
    if (!(name in checks)) throw new Error(`no such vectors: ${Object.keys(checks).join(', ')}`);
    await checks[name](report);
  } catch (error) {
    report.differences.push(error.message);
  }
  agree = report.close() && agree;
}
console.log(agree ? 'every vector is reproduced' : 'some vectors are not reproduced');
process.exit(agree ? 0 : 1);
