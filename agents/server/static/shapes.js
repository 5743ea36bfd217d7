// Crown, tower, chevron and dice, as SVG.

import { s } from "./dom.js";

const CROWN = [
  [-0.52, 0.46],
  [-0.64, -0.3],
  [-0.3, 0.02],
  [0, -0.56],
  [0.3, 0.02],
  [0.64, -0.3],
  [0.52, 0.46],
];
const HALF_TOWER = [
  [0, -0.68],
  [0.21, -0.68],
  [0.21, -1],
  [0.42, -1],
  [0.42, -0.68],
  [0.42, -1],
  [0.84, -1],
  [0.84, -0.3],
  [0.56, -0.3],
  [0.56, 0.72],
  [0.8, 0.72],
  [0.8, 1],
];
const TOWER = [...HALF_TOWER, ...HALF_TOWER.map(([x, y]) => [-x, y]).reverse()];
const PIPS = {
  1: [[0, 0]],
  2: [
    [-1, -1],
    [1, 1],
  ],
  3: [
    [-1, -1],
    [0, 0],
    [1, 1],
  ],
  4: [
    [-1, -1],
    [1, -1],
    [-1, 1],
    [1, 1],
  ],
  5: [
    [-1, -1],
    [1, -1],
    [0, 0],
    [-1, 1],
    [1, 1],
  ],
  6: [
    [-1, -1],
    [1, -1],
    [-1, 0],
    [1, 0],
    [-1, 1],
    [1, 1],
  ],
};

function polygon(points, [x, y], scale, properties) {
  const placed = points.map(([across, down]) => `${x + across * scale},${y + down * scale}`);
  return s("polygon", { points: placed.join(" "), ...properties });
}

export const crown = (at, scale, properties) => polygon(CROWN, at, scale, properties);
export const tower = (at, scale, properties) => polygon(TOWER, at, scale, properties);

/** An arrow head about a point, from one point of the board to another. */
export function chevron([x, y], scale, [dx, dy], properties) {
  const [ax, ay, bx, by] = [-dx - dy, -dy + dx, -dx + dy, -dy - dx].map((each) => each * scale);
  const half = [dx * scale * 0.5, dy * scale * 0.5];
  const points = [
    [x + ax * 0.85 + half[0], y + ay * 0.85 + half[1]],
    [x + half[0], y + half[1]],
    [x + bx * 0.85 + half[0], y + by * 0.85 + half[1]],
  ];
  return s("polyline", { points: points.map((each) => each.join(",")).join(" "), ...properties });
}

/** A die's face as the children of a group. */
export function dieFace(value, [x, y], side) {
  const pips = PIPS[value].map(([across, down]) =>
    s("circle", {
      class: "pip",
      cx: x + side * (0.5 + 0.25 * across),
      cy: y + side * (0.5 + 0.25 * down),
      r: side * 0.095,
    }),
  );
  const face = { class: "face", x, y, width: side, height: side, rx: side / 4 };
  return [s("rect", face), ...pips];
}

/** A die as a picture of its own; what it shows is said beside it. */
export function die(value) {
  const properties = { class: "die", viewBox: "0 0 24 24", "aria-hidden": "true" };
  return s("svg", properties, dieFace(value, [1, 1], 22));
}
