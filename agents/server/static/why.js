// "Why": what a policy thinks of the turns that could be played, asked for when wanted.

import { ask } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { isSame } from "./draft.js";
import { agentName, capital, movesInWords, percent, plain, signed } from "./words.js";

const ALTERNATIVES = 8;

export class Why {
  /** `agents` is the service's list; `onPick(question, turn)` and `onClose()` are the table's. */
  constructor(board, agents, { onPick, onClose }) {
    this.board = board;
    this.explaining = agents.agents.filter((agent) => agent.explains);
    this.suggested = agents.suggested;
    this.onPick = onPick;
    this.onClose = onClose;
    this.question = null;
    this.asking = null;
    this.opener = null;
    byId("why-close").addEventListener("click", () => this.close());
    byId("why-agent").addEventListener("change", () => this.answer());
  }

  get isOpen() {
    return this.question !== null;
  }

  /**
   * Ask about a position: `match`, the number of `turns` before it, the `seat` and what it `rolled`;
   * `played`, the turn that was played; `places`, to name tiles.
   */
  open(question) {
    this.opener = this.isOpen ? this.opener : document.activeElement;
    this.question = question;
    const { match, seat, turns, played } = question;
    const known = this.explaining.filter((agent) => agent.modes.includes(match.mode));
    const names = known.map((agent) => agent.name);
    const own = match.agents[seat];
    const strongest = this.suggested.findLast((name) => names.includes(name));
    const chosen = names.includes(own) ? own : strongest;
    const name = capital(this.board.seat_names[seat]);
    byId("why").hidden = false;
    byId("why-title").textContent = played ? `Why? ${name}’s turn ${turns + 1}` : `Advice for ${name}`;
    fill(
      byId("why-agent"),
      names.map((each) => h("option", { value: each, selected: each === chosen }, agentName(each))),
    );
    if (chosen) this.answer();
    else this.tell("No agent of this service explains its choices under these rules.");
    byId("why-title").focus();
  }

  close() {
    if (!this.isOpen) return;
    this.asking?.abort();
    this.question = null;
    if (byId("why").contains(document.activeElement)) this.opener?.focus();
    byId("why").hidden = true;
    this.onClose();
  }

  tell(text) {
    byId("why-value").textContent = text;
    fill(byId("why-list"));
  }

  async answer() {
    const { question } = this;
    const { match, seat, turns, rolled } = question;
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const agent = byId("why-agent").value;
    this.tell("Thinking …");
    const state = match.stateAt(turns);
    const body = { rules: match.rules, state, seat, rolled, agent, explain: ALTERNATIVES };
    try {
      const { explanation } = await ask("/v1/decide", { body, signal });
      if (explanation) this.show(question, agent, explanation);
      else this.tell(`${agentName(agent)} does not explain its choices.`);
    } catch (error) {
      if (!signal.aborted) this.tell(error.message);
    }
  }

  show(question, agent, { value, unit, candidates, alternatives }) {
    const { match, seat, turns, played } = question;
    const own = match.agents[seat];
    const whose =
      played && own !== agent ? `Played by ${agentName(own)}; this is what ${agentName(agent)} thinks. ` : "";
    const looked = `It looked at ${candidates} turns. `;
    // Policies play what they hold for the best, unless they look ahead first.
    const isTaken = ({ chosen, turn }) => chosen || (own === agent && played && isSame(played, turn));
    const ahead = alternatives.slice(1).some(isTaken)
      ? "It looks ahead, with dice of its own, before it chooses: its choice need not be its first thought, nor the same twice."
      : "";
    byId("why-value").textContent = `${whose}${valueInWords(value, unit)}${looked}${ahead}`;
    const before = match.scoresAt(turns)[seat].total;
    const most = Math.max(...alternatives.map(({ probability }) => probability ?? 0), 1e-9);
    fill(
      byId("why-list"),
      alternatives.map((each) => {
        const bar = h("span", { class: "bar" });
        bar.style.width = `${(100 * (each.probability ?? 0)) / most}%`;
        const isPlayed = played && isSame(played, each.turn);
        return h(
          "li",
          {},
          h(
            "button",
            { type: "button", onclick: (event) => this.pick(event.currentTarget, question, each.turn) },
            h("span", { class: "share" }, each.probability === null ? "–" : percent(each.probability)),
            h(
              "span",
              { class: "what" },
              `${each.turn.direction}: ${movesInWords(each.turn, question.places)}`,
              each.turn.noble.when === "after" ? " last" : "",
              isPlayed ? h("span", { class: "tag" }, "played") : null,
              each.chosen && !isPlayed ? h("span", { class: "tag" }, "its choice") : null,
            ),
            h(
              "span",
              { class: "gain", title: "what the own total gains" },
              signed(each.after[seat] - before),
            ),
            h("span", { class: "track", "aria-hidden": "true" }, bar),
          ),
        );
      }),
    );
  }

  pick(button, question, turn) {
    for (const each of byId("why-list").querySelectorAll("button"))
      each.setAttribute("aria-pressed", each === button);
    this.onPick(question, turn);
  }
}

function valueInWords(value, unit) {
  if (value === null) return "";
  const told = `It values the position at ${plain(Number(value.toFixed(2)))}`;
  if (!unit) return `${told}. `;
  const of = unit.mode === "place" ? "" : `, where 1 is ${unit.scale} points of ${unit.mode}`;
  return `${told}${of}. `;
}
