// Scores by source, and the position in words.

import { byId, fill, h } from "./dom.js";
import { NOBLE } from "./geometry.js";
import { capital, pieceName, plain } from "./words.js";

const COLUMNS = ["progression", "combat", "penalties", "bonus"];

export const seatLabel = (board, seat) => [
  h("span", { class: `swatch seat-${seat}`, "aria-hidden": "true" }),
  capital(board.seat_names[seat]),
];

const heads = (titles) =>
  h(
    "thead",
    {},
    h(
      "tr",
      {},
      titles.map((title) => h("th", { scope: "col" }, title)),
    ),
  );

export function showScores(board, match, turns, ours) {
  const rows = match.scoresAt(turns).map((score, seat) =>
    h(
      "tr",
      { class: ours.includes(seat) ? "ours" : null },
      h("th", { scope: "row" }, seatLabel(board, seat), h("small", {}, match.player(seat))),
      h("td", { class: "sum" }, plain(score.total)),
      COLUMNS.map((column) => h("td", {}, plain(score[column]))),
    ),
  );
  fill(byId("scores"), heads(["Seat", "total", "progress", ...COLUMNS.slice(1)]), h("tbody", {}, rows));
}

/** Tell where every piece stands, and what each seat holds; `*` is past the midpoint. */
export function showPosition(board, match, turns, places) {
  const state = match.stateAt(turns);
  const rows = board.seats.map(({ seat }) => {
    const where = state.position[seat].map((position, piece) => {
      const isHome = position >= board.home_code;
      const star = state.midpoint[seat][piece] && !isHome ? "*" : "";
      return h("td", {}, places.place(seat, position) + star);
    });
    const rolls = state.store[seat].flatMap((count, index) => new Array(count).fill(index + 1));
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, seatLabel(board, seat)),
      where,
      h("td", {}, rolls.join(" ") || "none"),
      h("td", {}, String(state.credits[seat])),
    );
  });
  const pieces = Array.from({ length: NOBLE + 1 }, (_, piece) => pieceName(piece));
  fill(
    byId("position"),
    h(
      "caption",
      {},
      `Tile numbers are ${capital(board.seat_names[places.viewer])}’s, ${places.direction}. ` +
        "* past midpoint.",
    ),
    heads(["Seat", ...pieces, "rolls", "credits"]),
    h("tbody", {}, rows),
  );
}

/** Tell how a match ended. */
export function showOutcome(board, match, onAgain) {
  const { totals, places, reason } = match.result;
  const best = places.flatMap((place, seat) => (place === 1 ? [capital(board.seat_names[seat])] : []));
  const title =
    best.length === 1
      ? `${best[0]} wins with ${Math.max(...totals)} points`
      : `${best.join(" and ")} share the first place`;
  const order = totals.map((_, seat) => seat).toSorted((a, b) => places[a] - places[b]);
  fill(
    byId("outcome"),
    h("h2", { tabindex: "-1" }, title),
    h(
      "ol",
      { class: "places" },
      order.map((seat) =>
        h("li", {}, h("b", {}, `${places[seat]}.`), " ", seatLabel(board, seat), ` ${plain(totals[seat])}`),
      ),
    ),
    h("p", { class: "muted" }, reason === "clock" ? "The clock has run out." : "All seats are Home."),
    match.seed === null ? null : h("p", { class: "muted" }, `Seed of the dice: ${match.seed}`),
    h(
      "div",
      { class: "hand-buttons" },
      h("button", { type: "button", class: "primary", onclick: onAgain }, "New match"),
    ),
  );
  return title;
}
