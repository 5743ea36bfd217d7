// The turn that is due here: its draft, what the referee says of it, and playing it.

import { ask } from "./api.js";
import { Draft } from "./draft.js";

const PREVIEW_PAUSE = 60; // milliseconds without another change of the draft

/** Ask the referee what a turn would do after so many `turns`: its `line`, or why it is `refused`. */
export async function referee(match, turns, { seat, rolled }, turn, signal) {
  const body = { rules: match.rules, state: match.stateAt(turns), seat, rolled, turn };
  try {
    return { ...(await ask("/v1/referee/play", { body, signal })), refused: null };
  } catch (error) {
    return { line: null, refused: error.message };
  }
}

export class Turn {
  /** `onChange()` is called when there is something new to show, `onProblem(error)` if a turn fails. */
  constructor(hand, { onChange, onProblem }) {
    this.hand = hand;
    this.onChange = onChange;
    this.onProblem = onProblem;
    this.forget();
  }

  forget() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.match = null;
    this.number = null;
    this.draft = null;
    this.preview = null;
    this.hand.hold(null);
  }

  /** Begin a draft for the turn that is due in a match; its direction is the seat's last. */
  begin(match, direction) {
    if (this.match === match && this.number === match.length) return;
    this.forget();
    const { seat, legal } = match.due;
    const last = match.lines.findLast((line) => line.seat === seat);
    this.match = match;
    this.number = match.length;
    this.draft = new Draft(legal, last?.direction ?? direction);
    this.hand.hold(this.draft);
  }

  /** The draft has changed: show it, and when no more changes follow, what it does. */
  changed() {
    clearTimeout(this.timer);
    this.asking?.abort();
    if (this.draft.isEmpty) this.preview = null;
    else this.timer = setTimeout(() => this.look(), PREVIEW_PAUSE);
    this.onChange();
  }

  async look() {
    this.asking = new AbortController();
    const { signal } = this.asking;
    const preview = await referee(this.match, this.number, this.match.due, this.draft.choice, signal);
    if (signal.aborted) return;
    this.preview = preview;
    this.onChange();
  }

  /** Play the draft; return the line of the record, or null if it was not played. */
  async commit() {
    const { match, draft, number, hand } = this;
    if (!draft || hand.isBusy) return null;
    hand.isBusy = true;
    this.onChange();
    try {
      const body = { turn: number, ...draft.choice };
      const token = match.tokens[match.due.seat];
      return (await ask(`/v1/matches/${match.id}/turns`, { body, token })).line;
    } catch (error) {
      // A repetition after a lost answer: the turn has been played, and the events tell it.
      if (error.code !== "conflict") this.onProblem(error);
      return null;
    } finally {
      hand.isBusy = false;
      this.onChange();
    }
  }
}
