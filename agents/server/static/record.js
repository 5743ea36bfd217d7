// A match as the page knows it: the match record (docs/record.md), and what is due now.

import { HEADER, RESULT, TURN, wrongIn } from "./form.js";
import { agentName } from "./words.js";

/** What is wrong with a file that should be a record. */
export class RecordError extends Error {}

const SEATS = 4;

/** Return the match in a record's text. */
export function readRecord(text) {
  const lines = text
    .split("\n")
    .map((line, index) => [line.trim(), index + 1])
    .filter(([line]) => line);
  if (!lines.length) throw new RecordError("the file is empty");
  const header = parse(...lines[0]);
  if (header.record !== "retinue-match") throw new RecordError("line 1 is not the header of a match record");
  if (header.version !== 1)
    throw new RecordError(`the record has version ${header.version}, and this page reads version 1`);
  check(header, HEADER, 1);
  const match = new Match(header);
  for (const [content, number] of lines.slice(1)) {
    const line = parse(content, number);
    if (match.result) throw new RecordError(`line ${number}: the result is not the last line`);
    check(line, line.result ? RESULT : TURN, number);
    if (line.result) match.result = line.result;
    else if (!match.append(line))
      throw new RecordError(`line ${number}: turn ${line.turn} where ${match.length} is due`);
  }
  return match;
}

function parse(line, number) {
  try {
    return Object(JSON.parse(line));
  } catch {
    throw new RecordError(`line ${number} is not JSON`);
  }
}

function check(line, form, number) {
  const wrong = wrongIn(line, form);
  if (wrong) throw new RecordError(`line ${number}: ${wrong}`);
}

/** A match, its turns so far, and where it is hosted if it is. */
export class Match {
  constructor(header) {
    this.rules = header.rules;
    this.agents = header.agents;
    this.start = header.start;
    this.seed = header.seed ?? null;
    this.lines = [];
    this.result = null;
    this.id = null;
    this.tokens = [];
    this.due = null;
    this.penalties = [new Array(SEATS).fill(0)];
  }

  get length() {
    return this.lines.length;
  }

  get mode() {
    return this.rules.mode;
  }

  /** Return who plays a seat. */
  player(seat) {
    return this.tokens[seat] ? "you" : agentName(this.agents[seat]);
  }

  /** Add the next line; return whether it was the next. */
  append(line) {
    if (line.turn !== this.length) return false;
    const penalties = [...this.penalties.at(-1)];
    for (const event of line.events) if (event.type === "blocked") penalties[line.seat] += event.points ?? 0;
    this.lines.push(line);
    this.penalties.push(penalties);
    return true;
  }

  /** Return the state after so many turns, before the next roll. */
  stateAt(turns) {
    return turns ? this.lines[turns - 1].after : this.start;
  }

  /** Return each seat's total and where it came from, after so many turns. */
  scoresAt(turns) {
    const state = this.stateAt(turns);
    return state.combat.map((combat, seat) => {
      const progression = state.progression[seat].reduce((sum, points) => sum + points, 0);
      const penalties = this.penalties[turns][seat];
      const bonus = state.bonus[seat];
      const total = progression + combat + bonus;
      return { total, progression, combat: combat - penalties, penalties, bonus };
    });
  }

  /** Return the seat whose turn came, or comes, after so many turns; null if none is known. */
  seatAt(turns) {
    return this.lines[turns]?.seat ?? (turns === this.length ? (this.due?.seat ?? null) : null);
  }

  /** Whether this page may move for the seat that is due. */
  get isOurs() {
    return this.due?.kind === "human" && Boolean(this.tokens[this.due.seat]);
  }
}
