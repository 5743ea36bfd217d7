// Plays a whole match against the service, which must be running (`retinue serve`): one seat by a
// policy that runs here, the others by the service's agents.
//
//   node play.mjs --mode brawl --seat 2 --opponents racer,greedy,policy:easy
//
// Exit code 0 after a match; 1, with the reason, if it could not be played.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';

import { roll } from './dice.js';
import { receive } from './game.js';
import { Policy } from './policy.js';
import { play } from './referee.js';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8765' },
    mode: { type: 'string', default: 'journey' },
    policy: { type: 'string' }, // an ONNX file, its manifest beside it
    seat: { type: 'string', default: '0' },
    opponents: { type: 'string', default: 'racer,racer,racer' },
  },
});

/** Ask the service; an error is thrown with its reason. */
async function ask(path, body, token) {
  const headers = { 'Content-Type': 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
  const response = await fetch(options.url + path, request).catch(() => {
    throw new Error(`nobody answers at ${options.url}: is \`retinue serve\` running?`);
  });
  if (response.ok) return response;
  const { error } = await response.json();
  throw new Error(`${path}: ${response.status}, ${error.field ?? 'request'}: ${error.reason}`);
}
const askJson = async (...request) => (await ask(...request)).json();

function expect(is, what) {
  if (!is) throw new Error(`the service and this example disagree about ${what}`);
}

async function loadPolicy(rules, digest) {
  const shipped = new URL(`../../vectors/policy-${rules.mode}-turn.onnx`, import.meta.url);
  const file = options.policy ?? fileURLToPath(shipped);
  const manifest = JSON.parse(await readFile(file.replace(/\.onnx$/, '.json'), 'utf8'));
  return Policy.load(new Uint8Array(await readFile(file)), manifest, rules, digest);
}

/** Play the turn that is due; the service must come to the same state as the rules here. */
async function playTurn(policy, rules, match, token) {
  const decision = receive(match.state, match.due.rolled, rules);
  expect(decision.seat === match.due.seat, 'whose turn it is');
  expect(decision.creditsEarned === match.due.credits_earned, 'credits');
  const turn = await policy.choose(decision);
  const path = `/v1/matches/${match.id}/turns?wait=30`;
  const answer = await askJson(path, { ...turn, turn: match.turn }, token);
  expect(isDeepStrictEqual(answer.line.after, play(decision, turn).after), `turn ${match.turn}`);
  return answer.match;
}

/** The dice came from a seed that nobody could know before, and that is published now. */
async function checkDice(match) {
  const sha256 = createHash('sha256').update(String(match.seed)).digest('hex');
  expect(sha256 === match.seed_sha256, 'the seed');
  const record = await (await ask(`/v1/matches/${match.id}/record`)).text();
  const lines = record
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  let { start: before } = lines[0];
  for (const { seat, rolled, after } of lines.slice(1, -1)) {
    const dice = roll(match.seed, seat, before.turns_taken[seat], rolled.length);
    expect(isDeepStrictEqual(dice, rolled), 'the dice');
    before = after;
  }
}

async function main() {
  const seat = Number(options.seat);
  const seats = options.opponents.split(',');
  seats.splice(seat, 0, 'human');
  const { rules, digest } = await askJson(`/v1/rules/${options.mode}`);
  const policy = await loadPolicy(rules, digest);
  const created = await askJson('/v1/matches', { mode: options.mode, seats });
  let { match } = created;
  let own = 0;
  while (match.status === 'playing') {
    if (match.due.kind === 'human') {
      match = await playTurn(policy, rules, match, created.tokens[seat]);
      own += 1;
    } else {
      match = await askJson(`/v1/matches/${match.id}?wait=30`);
    }
  }
  await checkDice(match);
  const { totals, places, reason } = match.result;
  console.log(
    `${match.turn} turns, ${own} of them by ${policy.encoding} in seat ${seat}; ${reason}`,
  );
  seats.forEach((name, index) => console.log(`${places[index]}. ${name}: ${totals[index]} points`));
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
