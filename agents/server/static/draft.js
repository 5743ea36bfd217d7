// A turn in the making. It only keeps what was chosen: what is allowed, the service says.

const GUARDS = 4;
const VALUES = 6;

export class Draft {
  /** `legal` is what the service says of the seat that is due; `direction` is where it begins. */
  constructor(legal, direction) {
    this.legal = legal;
    this.past = [];
    this.now = {
      direction,
      noble: { steps: 0, when: "before" },
      guards: Array.from({ length: GUARDS }, () => []),
    };
    this.first = this.now;
  }

  /** The choices as a record writes them. */
  get choice() {
    return this.now;
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get isEmpty() {
    return !this.now.noble.steps && this.now.guards.every((values) => !values.length);
  }

  /** How many rolls of each value are in the store and not given. */
  get left() {
    const counts = [...this.legal.store];
    for (const value of this.now.guards.flat()) counts[value - 1] -= 1;
    return counts;
  }

  change(part) {
    this.past.push(this.now);
    this.now = { ...this.now, ...part };
  }

  reverse() {
    this.change({ direction: this.now.direction === "forward" ? "backward" : "forward" });
  }

  /** Give rolls to a Guard. */
  give(values, guard) {
    this.change({ guards: this.now.guards.with(guard, sorted([...this.now.guards[guard], ...values])) });
  }

  takeBack(value, guard) {
    const values = this.now.guards[guard];
    this.change({ guards: this.now.guards.with(guard, values.toSpliced(values.indexOf(value), 1)) });
  }

  /** Let the Noble make so many steps; one that stays is written as moving before. */
  nobleSteps(steps) {
    this.change({ noble: { steps, when: steps ? this.now.noble.when : "before" } });
  }

  nobleWhen(when) {
    this.change({ noble: { ...this.now.noble, when } });
  }

  /** Take a whole turn. */
  take(choice) {
    this.change(structuredClone(choice));
  }

  undo() {
    if (this.canUndo) this.now = this.past.pop();
  }

  clear() {
    if (!this.isEmpty) this.change({ ...this.first, direction: this.now.direction });
  }
}

const sorted = (values) => values.toSorted((a, b) => a - b);

/** Whether two turns choose the same. */
export function isSame(one, other) {
  const told = ({ direction, noble, guards }) => JSON.stringify([direction, noble.steps, noble.when, guards]);
  return told(one) === told(other);
}

export const values = Array.from({ length: VALUES }, (_, index) => index + 1);
