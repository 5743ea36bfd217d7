// The controls of a human seat: rolls, Guards, the Noble, direction; what they add up to.

import { byId, fill, h } from "./dom.js";
import { values } from "./draft.js";
import { NOBLE } from "./geometry.js";
import { die } from "./shapes.js";
import { pieceName } from "./words.js";

const MOST_STEPS = 6;
const GUARDS = [0, 1, 2, 3];

export class Hand {
  /** `onChange()` is called when the draft has changed, `onCommit()` to play it, `onAdvice()` to ask. */
  constructor({ onChange, onCommit, onAdvice }) {
    this.onChange = onChange;
    this.draft = null;
    this.picked = [];
    this.isBusy = false;
    this.makeNoble();
    byId("direction").addEventListener("click", () => this.change((draft) => draft.reverse()));
    byId("undo").addEventListener("click", () => this.undo());
    byId("clear").addEventListener("click", () => this.change((draft) => draft.clear()));
    byId("advice").addEventListener("click", onAdvice);
    byId("commit").addEventListener("click", onCommit);
  }

  makeNoble() {
    const steps = Array.from({ length: MOST_STEPS + 1 }, (_, step) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name: "steps", value: step, onchange: () => this.steps(step) }),
        h("span", {}, String(step)),
      ),
    );
    byId("noble-steps").append(...steps);
    for (const input of byId("noble-when").querySelectorAll("input"))
      input.addEventListener("change", () => this.change((draft) => draft.nobleWhen(input.value)));
  }

  /** Take over a draft, or none. */
  hold(draft) {
    this.draft = draft;
    this.picked = [];
  }

  /** Change the draft; rolls that were chosen but not given are put back. */
  change(how) {
    if (!this.draft || this.isBusy) return;
    how(this.draft);
    this.picked = [];
    this.onChange();
  }

  undo() {
    if (this.picked.length) {
      this.picked = [];
      this.onChange();
    } else if (this.draft?.canUndo) this.change((draft) => draft.undo());
  }

  steps(count) {
    if (count >= 0 && count <= MOST_STEPS && this.draft?.legal.noble)
      this.change((draft) => draft.nobleSteps(count));
  }

  stepsBy(by) {
    if (this.draft) this.steps(this.draft.choice.noble.steps + by);
  }

  otherWhen() {
    if (this.draft?.choice.noble.steps)
      this.change((draft) => draft.nobleWhen(draft.choice.noble.when === "before" ? "after" : "before"));
  }

  /** Choose one more roll of a value, or none of it if all are chosen. */
  pickValue(value) {
    if (!this.draft || this.isBusy || !this.draft.left[value - 1]) return;
    const chosen = this.picked.filter((each) => each === value).length;
    if (chosen < this.draft.left[value - 1]) this.picked.push(value);
    else this.picked = this.picked.filter((each) => each !== value);
    this.onChange();
  }

  toggle(value, isPicked) {
    if (isPicked) this.picked.splice(this.picked.indexOf(value), 1);
    else this.picked.push(value);
    this.onChange();
  }

  /** Give the chosen rolls to a Guard. */
  give(guard) {
    if (!this.draft || this.isBusy || !this.draft.legal.guards[guard] || !this.picked.length) return;
    const given = this.picked;
    this.change((draft) => draft.give(given, guard));
  }

  /**
   * Show the draft: `seat` and `rolled` of the turn that is due, the `state` before it, `places`, and
   * the `preview` of what the draft does, null until the service has told.
   */
  show({ seat, rolled, state, places, preview }) {
    const { choice, legal } = this.draft;
    const isFocused = (id) => byId(id).contains(document.activeElement);
    const focus = [isFocused("tray") && "tray", isFocused("guards") && "guards"].find(Boolean);
    const key = document.activeElement?.dataset?.key;
    byId("hand").className = `panel hand seat-${seat}`;
    showDirection(byId("direction"), choice.direction);
    this.showNoble(choice.noble, legal.noble);
    byId("noble-place").textContent = noblePlace(seat, state, places, preview);
    this.showTray(rolled);
    fill(
      byId("guards"),
      GUARDS.map((guard) => this.guard(guard, seat, state, places, preview)),
    );
    if (focus) refocus(byId(focus), key);
    byId("undo").disabled = !this.draft.canUndo && !this.picked.length;
    byId("clear").disabled = this.draft.isEmpty;
    const commit = byId("commit");
    commit.textContent = this.draft.isEmpty ? "Move nothing" : "Play turn";
    commit.disabled = this.isBusy || Boolean(preview?.refused);
  }

  showNoble(noble, mayMove) {
    for (const input of byId("noble-steps").querySelectorAll("input")) {
      input.checked = Number(input.value) === noble.steps;
      input.disabled = !mayMove && input.value !== "0";
    }
    for (const input of byId("noble-when").querySelectorAll("input")) {
      input.checked = input.value === noble.when;
      input.disabled = !noble.steps;
    }
  }

  showTray(rolled) {
    const left = this.draft.left;
    const fresh = [...rolled];
    const picked = [...this.picked];
    const takeFrom = (list, value) => {
      const at = list.indexOf(value);
      return at >= 0 && list.splice(at, 1).length > 0;
    };
    const dice = values.flatMap((value) =>
      Array.from({ length: left[value - 1] }, (_, index) => {
        const isPicked = takeFrom(picked, value);
        const isFresh = takeFrom(fresh, value);
        const properties = {
          type: "button",
          class: isFresh ? "roll fresh" : "roll",
          "aria-pressed": isPicked,
          "aria-label": `Roll ${value}${isFresh ? ", new" : ""}`,
          "data-key": `${value}.${index}`,
          onclick: () => this.toggle(value, isPicked),
        };
        return h("button", properties, die(value));
      }),
    );
    const given = this.draft.choice.guards.flat().length;
    const none = given ? "All rolls are given." : "No rolls in store.";
    fill(byId("tray"), dice.length ? dice : h("span", { class: "muted" }, none));
    byId("tray-title").textContent = this.picked.length
      ? `${this.picked.join(" + ")} chosen: tap a Guard`
      : "Your rolls: tap one, then a Guard";
  }

  guard(guard, seat, state, places, preview) {
    const { legal, choice } = this.draft;
    const mayMove = legal.guards[guard];
    const here = places.place(seat, state.position[seat][guard]);
    const there = preview?.line && places.place(seat, preview.line.after.position[seat][guard]);
    const moves = there && preview.line.after.position[seat][guard] !== state.position[seat][guard];
    const name = pieceName(guard);
    const spent = choice.guards[guard];
    const gives = mayMove && this.picked.length > 0;
    const hidden = (text) => h("span", { class: "hidden-text" }, text);
    const arrow = h("span", { "aria-hidden": "true" }, "→ ");
    const piece = {
      type: "button",
      class: state.midpoint[seat][guard] ? "take past-midpoint" : "take",
      disabled: !mayMove,
      "data-key": `guard${guard}`,
      onclick: () => this.give(guard),
    };
    const give = gives ? `Give ${this.picked.join(" and ")} to ` : "";
    return h(
      "div",
      { class: gives ? "guard open" : "guard" },
      h(
        "button",
        piece,
        h("span", { class: `token seat-${seat}` }, hidden(`${give}G`), String(guard + 1)),
        h("span", { class: "from" }, here),
        h(
          "span",
          { class: "to" },
          moves ? [hidden("would come to "), arrow, there] : mayMove ? "" : "no rolls",
        ),
      ),
      h(
        "div",
        { class: "given" },
        spent.map((value, index) =>
          h(
            "button",
            {
              type: "button",
              class: "roll small",
              "aria-label": `Take ${value} back from ${name}`,
              "data-key": `given${guard}.${index}`,
              onclick: () => this.change((draft) => draft.takeBack(value, guard)),
            },
            die(value),
          ),
        ),
      ),
    );
  }
}

/** Put the focus where it was among buttons that were drawn anew, or on the next best. */
function refocus(container, key) {
  const same = key && container.querySelector(`[data-key="${CSS.escape(key)}"]:not(:disabled)`);
  (same || container.querySelector("button:not(:disabled)"))?.focus();
}

export function showDirection(button, direction) {
  const arrow = direction === "forward" ? "↻" : "↺";
  button.replaceChildren(h("span", { "aria-hidden": "true" }, arrow), ` ${direction}`);
  button.setAttribute("aria-label", `Direction: ${direction}. Change it`);
}

/** Return where the Noble stands, and where it would come. */
function noblePlace(seat, state, places, preview) {
  const [here, there] = [state, preview?.line?.after ?? state].map((each) => each.position[seat][NOBLE]);
  const told = [here, ...(there === here ? [] : [there])];
  return `(${told.map((position) => places.place(seat, position)).join(" → ")})`;
}
