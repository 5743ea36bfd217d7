// The rules, for a frontend that judges turns itself; comments name the paragraphs of
// docs/rules.md. A decision is what `receive` in game.js returns.

import {
  CASTLES,
  CHECKPOINT_AT,
  FORWARD,
  GUARDS,
  HOME_BIT,
  HOME_PATH,
  LOOP,
  MIDPOINT,
  NOBLE,
  PIECES,
  QUARTER,
  SEATS,
  TURN_OFF,
  YARD,
  finishOrder,
  hasFinished,
  homeOf,
  legalGuards,
  nobleMayMove,
  seatToMove,
  totalOf,
} from './game.js';

/** Why a turn is refused, null if it is legal (rules 3.2). */
export function reasonAgainst(decision, turn) {
  const { state, seat } = decision;
  const { steps, when } = turn.noble;
  if (!Number.isInteger(steps) || steps < 0 || steps > 6) return 'the Noble makes 0 to 6 steps';
  if (steps === 0 && when !== 'before') return 'a Noble that stays is written as "before"';
  if (steps > 0 && !nobleMayMove(decision)) return 'the Noble is Home';
  const legal = legalGuards(decision);
  const left = [...state.store[seat]];
  for (const [guard, values] of turn.guards.entries()) {
    if (values.length > 0 && !legal[guard]) return `G${guard + 1} may not be given rolls`;
    for (const value of values) {
      left[value - 1] -= 1;
      if (!(left[value - 1] >= 0)) return `there are not so many rolls of ${value}`;
    }
  }
  return null;
}

/**
 * Play a legal turn.
 * @returns {{events: object[], after: object, next: number|null, result?: object}} as the match
 *   record has them; `next` is the seat to move then
 */
export function play(decision, turn) {
  const table = new Table(decision, turn);
  if (turn.noble.when === 'before') table.moveNoble();
  table.moveGuards();
  if (turn.noble.when === 'after') table.moveNoble();
  table.endTurn();
  const { state: after, events, rules } = table;
  const next = seatToMove(after, rules);
  return { events, after, next, ...(next === null ? { result: resultOf(after, rules) } : {}) };
}

function resultOf(state, rules) {
  const totals = [0, 1, 2, 3].map((seat) => totalOf(state, seat));
  const order = finishOrder(state, rules);
  return {
    totals,
    places: totals.map((own) => 1 + totals.filter((other) => other > own).length),
    finish_order: order,
    reason: order.length === SEATS ? 'finished' : 'clock',
  };
}

class Table {
  constructor({ state, seat, rules }, turn) {
    this.state = structuredClone(state);
    this.seat = seat;
    this.rules = rules;
    this.turn = turn;
    this.events = [];
    this.assigned = turn.guards.map((values) => values.reduce((sum, value) => sum + value, 0));
    this.remaining = [...this.assigned, turn.noble.steps]; // 3.3.1
    for (const value of turn.guards.flat()) this.state.store[seat][value - 1] -= 1;
  }

  emit(type, piece, more, points) {
    const event = piece === null ? { type } : { type, piece };
    this.events.push({ ...event, ...more, ...(points ? { points } : {}) });
  }

  /** Where one step leads (rules 2.2 to 2.7). */
  nextPosition(piece) {
    const position = this.state.position[this.seat][piece];
    const past = this.state.midpoint[this.seat][piece] === 1;
    if (position === YARD) return 0;
    if (position >= HOME_PATH) return position + 1;
    if (this.turn.direction === FORWARD) {
      return past && position === TURN_OFF ? HOME_PATH : (position + 1) % LOOP;
    }
    if (position > 0) return position - 1;
    return past ? HOME_PATH : LOOP - 1;
  }

  /** Where this seat's offset lies for another seat. */
  seenBy(other, offset) {
    return (offset + QUARTER * (this.seat - other) + SEATS * LOOP) % LOOP;
  }

  /** Whether another seat's stack stops `moving` pieces on a loop tile (rules 3.5.1). */
  isBlocked(offset, moving) {
    return [1, 2, 3].some((turned) => {
      const other = (this.seat + turned) % SEATS;
      const there = this.seenBy(other, offset);
      const guards = this.state.position[other].slice(0, GUARDS);
      return guards.filter((position) => position === there).length > moving;
    });
  }

  /** Take a piece one step and score it (rules 3.3.7, 4.1). */
  step(piece, position) {
    const { state, seat, rules } = this;
    if (state.position[seat][piece] === YARD) {
      if (piece !== NOBLE) state.credits[seat] -= 1; // 3.3.6
      this.emit('exit', piece);
    }
    state.position[seat][piece] = position;
    this.remaining[piece] -= 1;
    if (position === homeOf(rules)) {
      this.remaining[piece] = 0; // 2.7
      this.score(piece, HOME_BIT, rules.progression.home);
    } else if (position === MIDPOINT) {
      this.reachMidpoint(piece);
    } else if (position < HOME_PATH && CHECKPOINT_AT[position] >= 0) {
      const kind = position === 0 ? 'own_entering' : 'other_entering';
      const points = rules.progression[CASTLES.includes(position) ? 'castle' : kind];
      this.score(piece, CHECKPOINT_AT[position], points);
    }
  }

  reachMidpoint(piece) {
    const { state, seat, rules } = this;
    if (state.midpoint[seat][piece] === 1) return;
    const points = rules.progression.midpoint[piece === NOBLE ? 1 : 0];
    state.midpoint[seat][piece] = 1;
    state.checkpoints[seat][piece] = 0;
    state.progression[seat][piece] += points;
    this.emit('midpoint', piece, {}, points);
  }

  score(piece, bit, pair) {
    const { state, seat } = this;
    const isNew = ((state.checkpoints[seat][piece] >> bit) & 1) === 0;
    const points = isNew ? pair[piece === NOBLE ? 1 : 0] : 0;
    state.checkpoints[seat][piece] |= 1 << bit;
    state.progression[seat][piece] += points;
    if (bit === HOME_BIT) this.emit('home', piece, {}, points);
    else if (isNew) this.emit('checkpoint', piece, { checkpoint: bit }, points);
  }

  /** Take away the steps that a blockade cost (rules 3.5.3, 3.5.4). */
  trim(piece, byOthers) {
    const trimmed = this.remaining[piece];
    const penalty = byOthers ? trimmed * this.rules.blockade_penalty : 0;
    this.state.combat[this.seat] -= penalty;
    this.remaining[piece] = 0;
    this.emit('blocked', piece, { trimmed }, -penalty);
  }

  /** Rules 3.4. */
  moveNoble() {
    const own = this.state.position[this.seat];
    while (this.remaining[NOBLE] > 0) {
      const position = this.nextPosition(NOBLE);
      const byOthers = position < HOME_PATH && this.isBlocked(position, 1);
      const guards = own.slice(0, GUARDS).filter((place) => place === position).length;
      const byOwn = position !== homeOf(this.rules) && guards >= 2; // 3.5.2
      if (byOthers || byOwn) this.trim(NOBLE, byOthers);
      else this.step(NOBLE, position);
    }
  }

  /** Rules 3.3.2 and 3.3.3. */
  moveGuards() {
    const own = this.state.position[this.seat];
    const groups = [];
    for (let guard = 0; guard < GUARDS; guard += 1) {
      if (this.remaining[guard] === 0) continue;
      const group = groups.find(([first]) => own[first] === own[guard] && own[guard] !== YARD);
      if (group) group.push(guard);
      else groups.push([guard]);
    }
    groups.sort(largerFirst).forEach((group) => this.moveGroup(group));
  }

  /** Move Guards that stand together until all have stopped (rules 3.3.4 and 3.3.5). */
  moveGroup(group) {
    const waiting = [];
    let going = group;
    while (going.length > 0) {
      const parts = [];
      for (const guard of going) {
        const next = this.nextPosition(guard);
        const part = parts.find(([first]) => this.nextPosition(first) === next);
        if (part) part.push(guard);
        else parts.push([guard]);
      }
      const [first, ...rest] = parts.sort(largerFirst);
      waiting.push(...rest.flat());
      going = this.stepTogether(first);
      if (going.length === 0) going = waiting.splice(0);
    }
  }

  /** Take Guards one step; returns those that go on. */
  stepTogether(group) {
    const position = this.nextPosition(group[0]);
    if (position < HOME_PATH && this.isBlocked(position, group.length)) {
      const here = this.state.position[this.seat][group[0]];
      const moved = group.some((guard) => this.remaining[guard] < this.assigned[guard]);
      for (const guard of group) this.trim(guard, true);
      if (moved) this.captureOn(here); // 3.6.1
      return [];
    }
    for (const guard of group) this.step(guard, position);
    const goingOn = group.filter((guard) => this.remaining[guard] > 0);
    if (goingOn.length < group.length && position < HOME_PATH) this.captureOn(position);
    return goingOn;
  }

  /** Rules 3.6. */
  captureOn(offset) {
    if (CASTLES.includes(offset) && this.rules.castles_protect) return; // 3.6.2
    for (const turned of [1, 2, 3]) {
      const other = (this.seat + turned) % SEATS;
      const there = this.seenBy(other, offset);
      if (there === 0) continue; // 3.6.2
      for (let piece = 0; piece < PIECES; piece += 1) {
        if (this.state.position[other][piece] === there) this.capture(other, piece);
      }
    }
  }

  capture(other, piece) {
    const { state, seat, rules } = this;
    const noble = state.position[seat][NOBLE];
    let zone = CASTLES.includes(noble) ? 'castle' : 'regular'; // 4.2
    if (noble <= 0 || noble >= HOME_PATH) zone = 'safe';
    const past = state.midpoint[seat][NOBLE] === 1 ? 'past' : 'before';
    const points = rules.combat[zone][past][piece === NOBLE ? 1 : 0];
    state.combat[seat] += points;
    state.position[other][piece] = YARD; // 3.6.3
    state.progression[other][piece] = 0;
    state.midpoint[other][piece] = 0;
    if (piece === NOBLE) state.credits[other] = rules.start_credits; // 3.6.4
    this.emit('capture', piece, { seat: other }, points);
  }

  endTurn() {
    const { state, seat, rules } = this;
    if (hasFinished(state, seat, rules)) {
      const bonus = rules.completion_bonus[finishOrder(state, rules).length - 1]; // 4.3
      state.bonus[seat] += bonus;
      this.emit('finish', null, {}, bonus);
    }
    state.turns_taken[seat] += 1;
    state.clock_seconds = Math.max(0, state.clock_seconds - rules.turn_seconds); // 5
  }
}

/** Sorts groups: the larger first, then by the lowest number. Members are ascending. */
function largerFirst(a, b) {
  return b.length - a.length || a[0] - b[0];
}
