// Single keys (docs/page.md lists them). They can be switched off.

import { byId, recall, remember } from "./dom.js";

const TYPING = "input:not([type=radio]):not([type=range]):not([type=checkbox]), select, textarea";

export function listenForKeys(table) {
  const dialog = byId("keys");
  const enabled = byId("keys-on");
  enabled.checked = recall("keys", true);
  enabled.addEventListener("change", () => remember("keys", enabled.checked));
  byId("help").addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    if (byId("table").hidden || dialog.open || event.altKey || event.metaKey) return;
    if (event.ctrlKey && event.key === "Enter") table.commit();
    else if (event.ctrlKey || !enabled.checked || event.target.closest(TYPING)) return;
    else if (!pressed(table, event)) return;
    event.preventDefault();
  });
}

/** Do what a key is for; return false if it is for nothing here. */
function pressed(table, { key, code, shiftKey, target }) {
  const { hand, timeline, isOurTurn } = table;
  const digit = /^(?:Digit|Numpad)([1-6])$/.exec(code)?.[1];
  const isOnSlider = target.matches("input");
  if (key === "?") byId("help").click();
  else if (key === "ArrowLeft" && !isOnSlider) timeline.step(-1);
  else if (key === "ArrowRight" && !isOnSlider) timeline.step(1);
  else if (key === "p") timeline.toggle();
  else if (key === "w") table.askWhy();
  else if (key === "d" && !isOurTurn) table.renumber();
  else if (!isOurTurn) return false;
  else if (digit && shiftKey && digit <= 4) hand.give(digit - 1);
  else if (digit && !shiftKey) hand.pickValue(Number(digit));
  else if (key === "+") hand.stepsBy(1);
  else if (key === "-") hand.stepsBy(-1);
  else if (key === "a") table.askAdvice();
  else if (key === "b") hand.otherWhen();
  else if (key === "d") hand.change((draft) => draft.reverse());
  else if (key === "u") hand.undo();
  else if (key === "c") hand.change((draft) => draft.clear());
  else return false;
  return true;
}
