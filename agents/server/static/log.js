// The turns so far in words, the newest first; the one that is shown tells all its events.

import { byId, h } from "./dom.js";
import { seatLabel } from "./scores.js";
import { consequencesInWords, eventInWords, movesInWords } from "./words.js";

export class Log {
  /** `onPick(turns)` is called when a turn is chosen. */
  constructor(board, onPick) {
    this.board = board;
    this.onPick = onPick;
    this.list = byId("log");
    this.items = [];
    this.key = "";
  }

  clear() {
    this.items = [];
    this.list.replaceChildren();
  }

  /** Show the turns of a match, with tiles as the board numbers them. */
  show(match, turns, places) {
    const key = `${places.viewer} ${places.direction}`;
    if (key !== this.key || this.items.length > match.length) this.clear();
    this.key = key;
    for (let turn = this.items.length; turn < match.length; turn += 1) {
      const item = h("li", {}, this.button(match, turn, places));
      this.items.push(item);
      this.list.prepend(item);
    }
    this.items.forEach((item, turn) => this.mark(item, match.lines[turn], turn + 1 === turns));
    this.items.forEach((item, turn) => item.classList.toggle("ahead", turn + 1 > turns));
  }

  button(match, turn, places) {
    const line = match.lines[turn];
    return h(
      "button",
      { type: "button", onclick: () => this.onPick(turn + 1) },
      h("span", { class: "log-number" }, String(turn + 1)),
      h("span", {}, seatLabel(this.board, line.seat), " ", lineInWords(match, turn, this.board, places)),
    );
  }

  mark(item, line, isShown) {
    if (isShown === item.classList.contains("shown")) return;
    item.classList.toggle("shown", isShown);
    item.querySelector("button").setAttribute("aria-current", isShown);
    item.querySelector("ul")?.remove();
    if (!isShown) return;
    item.append(eventList(line, this.board));
    // Scrolls the list alone, never the page.
    this.list.scrollTop = Math.max(0, item.offsetTop - this.list.offsetTop - 40);
  }
}

/** Return a list of all that happened in a turn. */
export function eventList(line, board) {
  const told = [
    `rolled ${line.rolled.join(" ") || "no dice"}`,
    ...(line.credits_earned ? [`${line.credits_earned} exit credit earned`] : []),
    ...line.events.map((event) => eventInWords(event, board)),
  ];
  return h(
    "ul",
    {},
    told.map((each) => h("li", {}, each)),
  );
}

/** Return a played turn in one line. */
export function lineInWords(match, turn, board, places) {
  const line = match.lines[turn];
  const gain = match.scoresAt(turn + 1)[line.seat].total - match.scoresAt(turn)[line.seat].total;
  const moves = movesInWords(line, places, line.seat, line.after);
  return `${line.direction}: ${moves}; ${consequencesInWords(line, board, gain)}`;
}
