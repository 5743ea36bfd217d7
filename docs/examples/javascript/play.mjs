// Plays a whole match against the service: one seat by a policy that runs here, the others by the
// service's agents. `retinue serve` must be running.
//
//   node play.mjs --mode brawl --policy ../../vectors/policy-brawl-turn.onnx --opponents racer,random,greedy

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
    policy: { type: 'string' },
    seat: { type: 'string', default: '0' },
    opponents: { type: 'string', default: 'racer,racer,racer' },
  },
});
const shipped = new URL(`../../vectors/policy-${options.mode}-turn.onnx`, import.meta.url);
const file = options.policy ?? fileURLToPath(shipped);
const seat = Number(options.seat);
const seats = options.opponents.split(',');
seats.splice(seat, 0, 'human');

/** Ask the service; an answer that is an error is thrown with its reason. */
async function ask(path, body, token) {
  const headers = { 'Content-Type': 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
  const response = await fetch(options.url + path, request);
  if (response.ok) return response;
  const { error } = await response.json();
  throw new Error(`${path}: ${response.status}, ${error.field ?? 'request'}: ${error.reason}`);
}
const askJson = async (...request) => (await ask(...request)).json();

function expect(is, what) {
  if (!is) throw new Error(`the service and this example disagree about ${what}`);
}

const { rules, digest } = await askJson(`/v1/rules/${options.mode}`);
const manifest = JSON.parse(await readFile(file.replace(/\.onnx$/, '.json'), 'utf8'));
const policy = await Policy.load(new Uint8Array(await readFile(file)), manifest, rules, digest);

const created = await askJson('/v1/matches', { mode: options.mode, seats });
const token = created.tokens[seat];
let { match } = created;
let played = 0;
while (match.status === 'playing') {
  if (match.due.kind === 'agent') {
    match = await askJson(`/v1/matches/${match.id}?wait=30`);
    continue;
  }
  const decision = receive(match.state, match.due.rolled, rules);
  expect(decision.seat === match.due.seat, 'whose turn it is');
  expect(decision.creditsEarned === match.due.credits_earned, 'credits');
  const turn = await policy.choose(decision);
  const body = { ...turn, turn: match.turn };
  const answer = await askJson(`/v1/matches/${match.id}/turns?wait=30`, body, token);
  expect(isDeepStrictEqual(answer.line.after, play(decision, turn).after), `turn ${match.turn}`);
  match = answer.match;
  played += 1;
}

// The dice came from a seed that nobody could know before, and that is published now.
const sha256 = createHash('sha256').update(String(match.seed)).digest('hex');
expect(sha256 === match.seed_sha256, 'the seed');
const record = await (await ask(`/v1/matches/${match.id}/record`)).text();
const lines = record
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line));
let { start: before } = lines[0];
for (const { seat: mover, rolled, after } of lines.slice(1, -1)) {
  const dice = roll(match.seed, mover, before.turns_taken[mover], rolled.length);
  expect(isDeepStrictEqual(dice, rolled), 'the dice');
  before = after;
}
const { totals, places, reason } = match.result;
console.log(
  `${match.turn} turns, ${played} of them by ${manifest.encoding} in seat ${seat}; ${reason}`,
);
seats.forEach((name, index) => console.log(`${places[index]}. ${name}: ${totals[index]} points`));
