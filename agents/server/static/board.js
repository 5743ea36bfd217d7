// The board without its pieces: tiles and their numbers, Home, and the four corners.

import { s } from "./dom.js";
import { NOBLE, SIZE, middle } from "./geometry.js";
import { chevron, crown, dieFace, tower } from "./shapes.js";
import { capital, plain } from "./words.js";

const ORDINALS = ["1st", "2nd", "3rd", "4th"];
const LINE = 14; // from a number to one below it
const DIE = 28;
const DIE_PITCH = 37;
const VALUES = [1, 2, 3, 4, 5, 6];

const rect = (box, properties) => s("rect", { ...box, ...properties });

export class Board {
  constructor(root, geometry) {
    this.root = root;
    this.geometry = geometry;
    this.board = geometry.board;
    this.numbers = this.board.loop.map((_, index) => this.numeral(index));
    this.corners = this.board.seats.map(({ seat }) => new Corner(geometry, seat));
    this.frames = s("g", { class: "frames" });
    this.marks = s("g", { class: "marks" });
    this.midpoint = rect({}, { class: "midpoint", rx: 4 });
    this.layer = s("g", { class: "pieces" });
    root.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE}`);
    root.replaceChildren(
      glow(),
      ...this.corners.map((corner) => corner.element),
      ...geometry.cross.map((box) => rect(box, { class: "plate", rx: 6 })),
      ...this.board.loop.map((tile, index) => this.tile(tile, index)),
      ...this.board.seats.map(({ seat }) => this.homePath(seat)),
      this.home(),
      ...this.numbers,
      this.midpoint,
      this.frames,
      this.marks,
      this.layer,
    );
  }

  tile(tile, index) {
    const at = middle(this.geometry.stands[index]);
    const group = s("g", { class: "tile" });
    group.append(rect(this.geometry.tiles[index], { class: "floor", rx: 4 }));
    if (tile.castle) {
      group.classList.add("castle");
      group.append(tower(at, 11, { class: "tower" }));
    }
    if (tile.entering !== null) {
      group.classList.add("entering", `seat-${tile.entering}`);
      const way = heading(middle(this.geometry.corner(tile.entering)), at);
      group.append(chevron(at, 8, way, { class: "arrow" }));
    }
    return group;
  }

  numeral(index) {
    const tile = this.board.loop[index];
    const owner = tile.entering === null ? "" : ` on-seat seat-${tile.entering}`;
    return s("text", { class: `number${owner}` });
  }

  homePath(seat) {
    const { geometry } = this;
    const boxes = this.board.seats[seat].home_path.map((_, index) => geometry.pathTile(seat, index));
    const way = heading(middle(boxes[0]), middle(geometry.home));
    const tiles = boxes.map((box) => [
      rect(box, { class: "floor", rx: 4 }),
      chevron(middle(box), 6, way, { class: "arrow" }),
    ]);
    return s("g", { class: `home-path seat-${seat}` }, ...tiles);
  }

  home() {
    const box = this.geometry.home;
    const at = middle(box);
    const [left, top] = [box.x + 1, box.y + 1];
    const [right, bottom] = [box.x + box.width - 1, box.y + box.height - 1];
    const corners = [
      [left, bottom],
      [right, bottom],
      [right, top],
      [left, top],
    ];
    const parts = this.board.seats.map(({ seat, home }) => {
      const [x, y] = home.map((value) => this.geometry.along(value));
      // The two corners on the side of a seat's part of Home.
      const side = corners
        .toSorted((a, b) => Math.hypot(a[0] - x, a[1] - y) - Math.hypot(b[0] - x, b[1] - y))
        .slice(0, 2);
      const points = [...side, at].map((each) => each.join(",")).join(" ");
      return s("polygon", { class: `home seat-${seat}`, points });
    });
    const crest = s("circle", { class: "crest", cx: at[0], cy: at[1], r: 21 });
    return s("g", {}, ...parts, crest, crown(at, 17, { class: "crest-crown" }));
  }

  /** Number the tiles as a seat counts them in a direction, and mark that seat's midpoint. */
  number(places) {
    this.numbers.forEach((text, index) => {
      const { x, y, width, height } = this.geometry.strips[index];
      const number = places.number(this.board.loop[index]);
      const lines = width < height ? number.split("/") : [number];
      const first = y + height / 2 - ((lines.length - 1) * LINE) / 2;
      text.classList.toggle("long", lines[0].length > 2);
      text.replaceChildren(
        ...lines.map((line, row) => s("tspan", { x: x + width / 2, y: first + row * LINE }, line)),
      );
    });
    const index = this.board.loop.findIndex((tile) => tile.midpoint === places.viewer);
    for (const [name, value] of Object.entries(this.geometry.tiles[index]))
      this.midpoint.setAttribute(name, value);
  }

  /** Show what the corners tell of a position. */
  show(match, turns, seatToMove) {
    const scores = match.scoresAt(turns);
    const isLevel = scores.every(({ total }) => total === scores[0].total);
    for (const corner of this.corners) {
      const ahead = scores.filter(({ total }) => total > scores[corner.seat].total).length;
      corner.show(match, turns, isLevel ? null : ORDINALS[ahead], scores[corner.seat].total);
      corner.element.classList.toggle("to-move", corner.seat === seatToMove);
    }
  }
}

/** Return the direction, along an axis, from one point to another. */
function heading(from, to) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  return Math.abs(dx) > Math.abs(dy) ? [Math.sign(dx), 0] : [0, Math.sign(dy)];
}

function glow() {
  const stops = [
    [0.55, 0.95],
    [1, 0],
  ].map(([offset, opacity]) => s("stop", { offset, class: "glow-stop", "stop-opacity": opacity }));
  return s("defs", {}, s("radialGradient", { id: "glow" }, ...stops));
}

/** A seat's corner: name, total, Yard, store and exit credits. */
class Corner {
  constructor(geometry, seat) {
    this.seat = seat;
    this.name = capital(geometry.board.seat_names[seat]);
    const box = geometry.corner(seat);
    this.box = box;
    const at = (x, y) => ({ x: box.x + x, y: box.y + y });
    const edge = box.width - 14;
    this.title = s("text", { class: "seat-name", ...at(14, 35) }, this.name);
    this.total = s("text", { class: "total", ...at(edge, 37) });
    this.agent = s("text", { class: "small", ...at(14, 66) });
    this.place = s("text", { class: "small end", ...at(edge, 66) });
    this.held = s("text", { class: "small end", ...at(edge, 236) });
    this.dice = VALUES.map((value, index) => this.die(value, index));
    this.coins = s("g", { class: "coins" });
    const yard = { ...at(9, 92), width: box.width - 18, height: 48, rx: 24 };
    const slots = [0, 1, 2, 3, 4].map((piece) => {
      const [cx, cy] = geometry.yardSlot(seat, piece);
      const slot = s("circle", { class: "slot", cx, cy, r: 17 });
      return piece === NOBLE ? [slot, crown([cx, cy], 9, { class: "slot-crown" })] : slot;
    });
    this.element = s(
      "g",
      { class: `corner seat-${seat}` },
      rect(box, { class: "card", rx: 12 }),
      this.title,
      this.total,
      this.agent,
      this.place,
      s("rect", { class: "yard", ...yard }),
      ...slots.flat(),
      ...this.dice.map(({ group }) => group),
      this.coins,
      this.held,
    );
  }

  die(value, index) {
    const x = this.box.x + this.box.width / 2 + (index - 2.5) * DIE_PITCH - DIE / 2;
    const y = this.box.y + 156;
    const count = s("text", { class: "count", x: x + DIE / 2, y: y + DIE + 18 });
    const group = s("g", { class: "stored" }, ...dieFace(value, [x, y], DIE), count);
    return { group, count };
  }

  show(match, turns, place, total) {
    const state = match.stateAt(turns);
    const store = state.store[this.seat];
    this.total.textContent = plain(total);
    this.place.textContent = place ?? "";
    this.agent.textContent = shortened(match.player(this.seat));
    this.dice.forEach(({ group, count }, index) => {
      group.classList.toggle("none", !store[index]);
      count.textContent = store[index] ? `×${store[index]}` : "";
    });
    const held = store.reduce((sum, each) => sum + each, 0);
    this.held.textContent = `${held}/${match.rules.store_capacity} rolls`;
    this.showCredits(state.credits[this.seat], match.rules.max_credits);
  }

  showCredits(own, most) {
    const y = this.box.y + 231;
    const coins = Array.from({ length: Math.min(most, 6) }, (_, index) =>
      s("circle", {
        class: index < own ? "coin" : "coin spent",
        cx: this.box.x + 22 + 19 * index,
        cy: y,
        r: 6.5,
      }),
    );
    this.coins.replaceChildren(s("title", {}, `${own} of ${most} exit credits`), ...coins);
  }
}

const shortened = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);
