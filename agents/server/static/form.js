// The form of a record's lines (docs/record.md), as far as the page reads them: a file may hold
// anything. Whether the play is right, `retinue replay --verify` tells.

const SEATS = 4;
const GUARDS = 4;
const PIECES = 5;
const VALUES = 6;

const isWhole = Number.isInteger;
const isText = (value) => typeof value === "string";
const isRoll = (value) => isWhole(value) && value >= 1 && value <= VALUES;
const isAny = () => true;
const isOneOf =
  (...choices) =>
  (value) =>
    choices.includes(value);
const isList = (isItem, length) => (value) =>
  Array.isArray(value) && (length ?? value.length) === value.length && value.every(isItem);

const bySeat = (isItem) => isList(isItem, SEATS);
const byPiece = bySeat(isList(isWhole, PIECES));
const isSeat = isOneOf(0, 1, 2, 3);

const STATE = {
  position: byPiece,
  midpoint: byPiece,
  progression: byPiece,
  combat: bySeat(isWhole),
  bonus: bySeat(isWhole),
  store: bySeat(isList(isWhole, VALUES)),
  credits: bySeat(isWhole),
  clock_seconds: isWhole,
};
const RULES = {
  mode: isText,
  home_path_tiles: isWhole,
  store_capacity: isWhole,
  max_credits: isWhole,
  turn_seconds: isWhole,
};
const EVENT = { type: isText };

export const HEADER = { rules: RULES, agents: bySeat(isText), start: STATE };
export const TURN = {
  turn: isWhole,
  seat: isSeat,
  rolled: isList(isRoll),
  credits_earned: isWhole,
  direction: isOneOf("forward", "backward"),
  noble: { steps: isWhole, when: isOneOf("before", "after") },
  guards: isList(isList(isRoll), GUARDS),
  events: isList((event) => wrongIn(event, EVENT) === null),
  after: STATE,
};
export const RESULT = {
  result: { totals: bySeat(isWhole), places: bySeat(isWhole), reason: isAny },
};

/** Return what of a line lacks or has another form, null if nothing. */
export function wrongIn(value, form, path = "") {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return `${path || "it"} is no object`;
  for (const [key, rule] of Object.entries(form)) {
    const place = path ? `${path}.${key}` : key;
    if (value[key] === undefined) return `${place} is missing`;
    const wrong = typeof rule === "function" ? null : wrongIn(value[key], rule, place);
    if (wrong) return wrong;
    if (typeof rule === "function" && !rule(value[key])) return `${place} has another form`;
  }
  return null;
}
