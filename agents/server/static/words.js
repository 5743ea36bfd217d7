// Places, turns and events in the words of docs/rules.md.

import { NOBLE } from "./geometry.js";

export const capital = (word) => word[0].toUpperCase() + word.slice(1);
export const signed = (number) => (number < 0 ? `−${-number}` : `+${number}`);
export const plain = (number) => (number < 0 ? `−${-number}` : String(number));
export const percent = (share) =>
  share > 0 && share < 0.001 ? "<0.1%" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;

export function clockText(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Return an agent's name as the page shows it. */
export function agentName(name) {
  return name.replace(/^policy:/, "");
}

export const pieceName = (piece) => (piece === NOBLE ? "Noble" : `G${piece + 1}`);

/** Names places as one seat counts them in one direction. */
export class Places {
  constructor(board, viewer, direction) {
    this.board = board;
    this.viewer = viewer;
    this.direction = direction;
    const numbers = board.loop.map((tile) => tile.numbers[direction][viewer]);
    const end = board.end_number[direction];
    /** The number that the own entering tile has at the end of the path, if it is another. */
    this.end = numbers.includes(end) ? null : end;
  }

  /** Return a tile's number; the own entering tile has two if the path also ends there. */
  number(tile) {
    const number = tile.numbers[this.direction][this.viewer];
    const isEnd = this.end !== null && tile.entering === this.viewer;
    return isEnd ? `${number}/${this.end}` : String(number);
  }

  /** Return where a seat's piece stands. */
  place(seat, position) {
    if (position < 0) return "Yard";
    const tile = this.board.loop.find((each) => each.offsets[seat] === position);
    if (tile) return this.number(tile);
    if (position >= this.board.home_code) return "Home";
    return `path ${position - this.board.loop.length + 1}`;
  }
}

/** Return what a turn does to its own pieces: `G2 to 14 (2+5), Noble to 9 (4)`. */
export function movesInWords(turn, places, seat = null, after = null) {
  const guards = turn.guards
    .map((values, piece) => ({ piece, spent: values.join("+") }))
    .filter(({ spent }) => spent);
  const noble = turn.noble.steps ? [{ piece: NOBLE, spent: turn.noble.steps }] : [];
  const order = turn.noble.when === "after" ? [...guards, ...noble] : [...noble, ...guards];
  const told = order.map(({ piece, spent }) => {
    const where = after ? ` to ${places.place(seat, after.position[seat][piece])}` : "";
    return `${pieceName(piece)}${where} (${spent})`;
  });
  return told.join(", ") || "nothing moves";
}

/** Return the captures and losses of a turn, and what its seat's total gained. */
export function consequencesInWords(line, board, gain) {
  const told = [];
  const captured = line.events.filter((event) => event.type === "capture");
  const names = captured.map(({ seat, piece }) => `${capital(board.seat_names[seat])} ${pieceName(piece)}`);
  if (names.length) told.push(`captures ${names.join(", ")}`);
  const trimmed = line.events
    .filter((event) => event.type === "blocked")
    .reduce((sum, event) => sum + event.trimmed, 0);
  if (trimmed) told.push(`${trimmed} steps blocked`);
  if (line.events.some((event) => event.type === "finish")) told.push("finishes");
  told.push(signed(gain));
  return told.join("; ");
}

/** Return one event in words. */
export function eventInWords(event, board) {
  const piece = event.piece === undefined ? "" : pieceName(event.piece);
  const points = event.points ? ` ${signed(event.points)}` : "";
  switch (event.type) {
    case "exit":
      return `${piece} leaves the Yard${points}`;
    case "checkpoint":
      return `${piece} reaches ${checkpointName(event.checkpoint)}${points}`;
    case "midpoint":
      return `${piece} reaches its midpoint${points}`;
    case "capture":
      return `captures ${capital(board.seat_names[event.seat])} ${piece}${points}`;
    case "blocked":
      return `${piece} is stopped by a stack, ${event.trimmed} steps trimmed${points}`;
    case "home":
      return `${piece} reaches Home${points}`;
    case "finish":
      return `all pieces Home${points}`;
    default:
      return `${event.type}${points}`;
  }
}

/** Return what a record bit stands for (rules 4.1). */
function checkpointName(bit) {
  if (bit === 0) return "its own entering tile";
  return bit <= 8 ? "a Castle" : "another entering tile";
}
