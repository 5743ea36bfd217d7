// Where everything lies in the picture. The cells come from the service; the look is ours.

export const NOBLE = 4;
export const SIZE = 720;
const MARGIN = 8;
const STRETCH = 2; // how much wider than long a tile of an arm is
const GAP = 1;
const STRIP = 20; // of a tile, at its outer end, for its number
const OVERLAP = 0.78; // of crowded pieces: their middles are at least so far apart, in diameters
export const PIECE = 28;

/** A box as {x, y, width, height}, its middle by {@link middle}. */
export const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];

export class Geometry {
  constructor(board) {
    this.board = board;
    const top = board.loop.filter((tile) => tile.y === 0).map((tile) => tile.x);
    this.low = Math.min(...top);
    this.high = Math.max(...top) + 1;
    const cells = board.grid + (this.high - this.low) * (STRETCH - 1);
    this.unit = (SIZE - 2 * MARGIN) / cells;
    this.tiles = board.loop.map((tile) => this.cellBox(tile.x, tile.y));
    this.strips = board.loop.map((tile, index) => this.strip(tile, this.tiles[index]));
    this.stands = this.tiles.map((box, index) => without(box, this.strips[index]));
    /** Absolute tile by seat and loop offset. */
    this.tileOf = board.seats.map(({ seat }) => {
      const tiles = [];
      board.loop.forEach((tile, index) => (tiles[tile.offsets[seat]] = index));
      return tiles;
    });
  }

  along(value) {
    const extra = Math.min(Math.max(value - this.low, 0), this.high - this.low);
    return MARGIN + this.unit * (value + (STRETCH - 1) * extra);
  }

  cellBox(x, y) {
    const [left, top] = [this.along(x), this.along(y)];
    return {
      x: left + GAP,
      y: top + GAP,
      width: this.along(x + 1) - left - 2 * GAP,
      height: this.along(y + 1) - top - 2 * GAP,
    };
  }

  strip(tile, box) {
    const half = (this.board.grid - 1) / 2;
    if (box.width > box.height) {
      const x = tile.x <= half ? box.x : box.x + box.width - STRIP;
      return { x, y: box.y, width: STRIP, height: box.height };
    }
    const y = tile.y <= half ? box.y : box.y + box.height - STRIP;
    return { x: box.x, y, width: box.width, height: STRIP };
  }

  /** The arms' cross, as two boxes. */
  get cross() {
    const [first, low, high, last] = [0, this.low, this.high, this.board.grid].map((at) => this.along(at));
    const across = { x: first, y: low, width: last - first, height: high - low };
    return [across, { x: low, y: first, width: high - low, height: last - first }];
  }

  /** The middle, which is Home. */
  get home() {
    const [low, high] = [this.along(this.low), this.along(this.high)];
    return { x: low, y: low, width: high - low, height: high - low };
  }

  isUpright(seat) {
    return this.board.seats[seat].home[0] === this.board.grid / 2;
  }

  pathTile(seat, index) {
    const path = this.board.seats[seat].home_path;
    const [x, y] = path[index].map((value) => this.along(value));
    const across = this.unit * STRETCH - 2 * GAP;
    const length = (this.low - 1) * this.unit;
    const along = length / Math.max(path.length, this.low - 1) - 2 * GAP;
    const [width, height] = this.isUpright(seat) ? [across, along] : [along, across];
    return { x: x - width / 2, y: y - height / 2, width, height };
  }

  /** A seat's corner of the board, where its Yard is. */
  corner(seat) {
    const [x, y] = this.board.seats[seat].yard;
    const side = this.low * this.unit - 6;
    const far = SIZE - MARGIN - side;
    const half = this.board.grid / 2;
    return { x: x < half ? MARGIN : far, y: y < half ? MARGIN : far, width: side, height: side };
  }

  yardSlot(seat, piece) {
    const { x, y, width } = this.corner(seat);
    return [x + width / 2 + (piece - 2) * 46, y + 116];
  }

  homeSlot(seat, piece) {
    const [x, y] = this.board.seats[seat].home.map((value) => this.along(value));
    const shift = (piece - 2) * 23;
    return this.isUpright(seat) ? [x + shift, y] : [x, y + shift];
  }

  /** Where pieces share a place: the part of the tile that is theirs, and a key for the place. */
  standOf(seat, position) {
    if (position < this.board.loop.length) {
      const tile = this.tileOf[seat][position];
      return { key: `t${tile}`, box: this.stands[tile] };
    }
    const index = position - this.board.loop.length;
    return { key: `p${seat}.${index}`, box: this.pathTile(seat, index) };
  }

  /** The whole tile of a position, null in Yard and Home. */
  tileBox(seat, position) {
    if (position < 0 || position >= this.board.home_code) return null;
    if (position < this.board.loop.length) return this.tiles[this.tileOf[seat][position]];
    return this.pathTile(seat, position - this.board.loop.length);
  }
}

function without(box, strip) {
  if (strip.width < box.width) {
    const x = strip.x === box.x ? box.x + STRIP : box.x;
    return { ...box, x, width: box.width - STRIP };
  }
  const y = strip.y === box.y ? box.y + STRIP : box.y;
  return { ...box, y, height: box.height - STRIP };
}

/** Return the diameter of `count` discs that share a box, and their middles. */
export function spread(count, box) {
  let best = { diameter: 0, rows: 1, columns: 1 };
  for (let rows = 1; rows <= count; rows += 1) {
    const columns = Math.ceil(count / rows);
    const diameter = Math.min(
      box.width / (1 + (columns - 1) * OVERLAP),
      box.height / (1 + (rows - 1) * OVERLAP),
      PIECE,
    );
    if (diameter > best.diameter) best = { diameter, rows, columns };
  }
  const { diameter, rows, columns } = best;
  const across = Math.min(diameter + 1, (box.width - diameter) / Math.max(columns - 1, 1));
  const down = Math.min(diameter + 1, (box.height - diameter) / Math.max(rows - 1, 1));
  const [x, y] = middle(box);
  const middles = Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / columns);
    const inRow = Math.min(columns, count - row * columns);
    const column = index % columns;
    return [x + (column - (inRow - 1) / 2) * across, y + (row - (rows - 1) / 2) * down];
  });
  return { diameter, middles };
}
