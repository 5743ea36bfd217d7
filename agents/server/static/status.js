// The lines above the board: whose turn it is, what was rolled, the clock, and the last turn.

import { byId, fill } from "./dom.js";
import { lineInWords } from "./log.js";
import { seatLabel } from "./scores.js";
import { die } from "./shapes.js";
import { capital, clockText, consequencesInWords, movesInWords } from "./words.js";

/**
 * Show how a match stands after so many `turns`; `trial` is a line that is only tried out, `isOurs`
 * says that the seat to move is the person's here.
 */
export function showStatus(board, match, { turns, trial, isOurs, places }) {
  const state = match.stateAt(turns);
  const isOver = Boolean(match.result) && turns === match.length;
  const due = isOver ? null : (match.lines[turns] ?? match.due);
  const who = due
    ? [...seatLabel(board, due.seat), isOurs ? ", your turn" : " to choose"]
    : [isOver ? "The match is over" : "The record so far"];
  fill(byId("who"), who);
  fill(
    byId("rolled"),
    (due?.rolled ?? []).map((value) => die(value)),
  );
  byId("rolled").setAttribute("aria-label", due ? `rolled ${due.rolled.join(" ") || "no dice"}` : "");
  byId("earned").textContent = due?.credits_earned ? `+${due.credits_earned} credit` : "";
  byId("clock-left").textContent = clockText(state.clock_seconds);
  const all = turns + Math.ceil(state.clock_seconds / match.rules.turn_seconds);
  byId("turn-number").textContent = `turn ${Math.min(turns + 1, all)} of ${all}`;
  fill(byId("last-move"), lastMove(board, match, turns, trial, places));
}

function lastMove(board, match, turns, trial, places) {
  if (trial)
    return ["If ", ...seatLabel(board, trial.seat), ` ${triedInWords(board, match, turns, trial, places)}`];
  if (!turns) return ["Nobody has moved yet."];
  const { seat } = match.lines[turns - 1];
  return ["Last ", ...seatLabel(board, seat), ` ${lineInWords(match, turns - 1, board, places)}`];
}

/** Return in one line a turn that would be played after so many `turns`. */
export function triedInWords(board, match, turns, line, places) {
  const { seat, after } = line;
  const total =
    after.progression[seat].reduce((sum, points) => sum + points, 0) + after.combat[seat] + after.bonus[seat];
  const gain = total - match.scoresAt(turns)[seat].total;
  const moves = movesInWords(line, places, seat, after);
  return `${line.direction}: ${moves}; ${consequencesInWords(line, board, gain)}`;
}
