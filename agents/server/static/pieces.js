// The pieces on the board: where they stand, where they came from, where a draft would lead.

import { s } from "./dom.js";
import { NOBLE, PIECE, middle, spread } from "./geometry.js";
import { crown } from "./shapes.js";
import { capital, pieceName } from "./words.js";

const YARD_PIECE = 36;
const HOME_PIECE = 21;

export class Pieces {
  /** `onPick(seat, piece)` is called for a piece that is tapped. */
  constructor(board, onPick) {
    this.board = board;
    this.geometry = board.geometry;
    this.sprites = this.geometry.board.seats.map(({ seat }) =>
      [0, 1, 2, 3, 4].map((piece) => {
        const sprite = drawn(seat, piece);
        const name = `${capital(this.geometry.board.seat_names[seat])} ${pieceName(piece)}`;
        sprite.prepend(s("title", {}, name));
        sprite.addEventListener("click", () => onPick(seat, piece));
        return sprite;
      }),
    );
    this.ghosts = s("g", { class: "ghosts" });
    board.layer.replaceChildren(...this.sprites.flat(), this.ghosts);
  }

  /**
   * Show a position: `state`; `draft`, the state to which a draft of `seat` leads, if there is one;
   * `last`, the line that led here, with the state `before` it; `movable`, whose pieces may be picked.
   */
  show({ state, draft = null, seat = null, last = null, before = null, movable = [] }) {
    const standing = state.position.flatMap((positions, owner) =>
      positions.map((position, piece) => ({ owner, piece, position, state })),
    );
    const drafted = (draft?.position[seat] ?? [])
      .map((position, piece) => ({ owner: seat, piece, position, state: draft, ghost: true }))
      .filter(({ position, piece }) => position !== state.position[seat][piece]);
    this.ghosts.replaceChildren();
    const groups = new Map();
    for (const each of [...standing, ...drafted]) {
      const alone = this.aloneAt(each);
      if (alone) this.put(each, ...alone);
      else {
        const { key, box } = this.geometry.standOf(each.owner, each.position);
        const whole = this.geometry.tileBox(each.owner, each.position);
        if (!groups.has(key)) groups.set(key, { box, whole, pieces: [] });
        groups.get(key).pieces.push(each);
      }
    }
    for (const { box, whole, pieces } of groups.values()) {
      // A crowd takes the room of the number too, so that it can be told apart.
      const { diameter, middles } = spread(pieces.length, pieces.length > 2 ? whole : box);
      pieces.forEach((each, index) => this.put(each, middles[index], diameter));
    }
    this.sprites.flat().forEach((sprite) => sprite.classList.remove("movable"));
    for (const piece of movable) this.sprites[seat][piece].classList.add("movable");
    this.showStacks(state);
    this.showMarks(last, before);
  }

  aloneAt({ owner, piece, position }) {
    if (position < 0) return [this.geometry.yardSlot(owner, piece), YARD_PIECE];
    if (position >= this.geometry.board.home_code) return [this.geometry.homeSlot(owner, piece), HOME_PIECE];
    return null;
  }

  put({ owner, piece, state, ghost }, [x, y], diameter) {
    const sprite = ghost ? drawn(owner, piece) : this.sprites[owner][piece];
    sprite.classList.toggle("past-midpoint", Boolean(state.midpoint[owner][piece]));
    sprite.style.transform = `translate(${x}px, ${y}px) scale(${diameter / PIECE})`;
    if (ghost) {
      sprite.classList.add("ghost");
      this.ghosts.append(sprite);
    }
  }

  /** Frame the tiles where a seat has two Guards or more. */
  showStacks(state) {
    const frames = [];
    state.position.forEach((positions, seat) => {
      const guards = positions.slice(0, NOBLE);
      for (const position of new Set(guards)) {
        const box = this.geometry.tileBox(seat, position);
        if (box && guards.filter((each) => each === position).length > 1)
          frames.push(s("rect", { ...box, rx: 4, class: `stack seat-${seat}` }));
      }
    });
    this.board.frames.replaceChildren(...frames);
  }

  /** Mark the tiles that the last turn's pieces left and reached, and what was captured. */
  showMarks(last, before) {
    const marks = [];
    if (last) {
      const { seat, after } = last;
      before.position[seat].forEach((from, piece) => {
        const to = after.position[seat][piece];
        if (from === to) return;
        const [left, reached] = [from, to].map((each) => this.geometry.tileBox(seat, each));
        if (left) {
          const [cx, cy] = middle(this.geometry.standOf(seat, from).box);
          marks.push(s("circle", { class: `left seat-${seat}`, cx, cy, r: 7 }));
        }
        if (reached) marks.push(s("rect", { class: "reached", ...reached, rx: 4 }));
      });
      before.position.forEach((positions, owner) =>
        positions.forEach((from, piece) => {
          if (from < 0 || after.position[owner][piece] >= 0) return;
          const [cx, cy] = this.geometry.yardSlot(owner, piece);
          marks.push(s("circle", { class: "captured", cx, cy, r: 21 }));
        }),
      );
    }
    this.board.marks.replaceChildren(...marks);
  }
}

/** Return a piece drawn about the origin, with its glow, which shows past the midpoint. */
function drawn(seat, piece) {
  const radius = PIECE / 2;
  const round = piece === NOBLE ? 0.62 : 1;
  const disc = (inset, name) => {
    const half = radius - inset;
    const box = { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: half * round };
    return s("rect", { class: name, ...box });
  };
  const numeral = () => s("text", { class: "ink", y: radius * 0.06 }, String(piece + 1));
  return s(
    "g",
    { class: `piece seat-${seat}` },
    s("circle", { class: "halo", r: radius * 1.6, fill: "url(#glow)" }),
    disc(-2.5, "pick"),
    disc(0, "edge"),
    disc(1.3, "rim"),
    disc(3, "body"),
    piece === NOBLE ? crown([0, 0], radius * 0.82, { class: "ink" }) : numeral(),
  );
}
