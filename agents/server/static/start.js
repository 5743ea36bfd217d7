// The first view: a mode, who has which seat, the clock; or a record file, or an earlier match.

import { ask } from "./api.js";
import { byId, fill, h, recall, remember } from "./dom.js";
import { seatLabel } from "./scores.js";
import { agentName, capital, clockText, percent } from "./words.js";

const HUMAN = "human";
const CLOCK_SHARES = [1, 1 / 2, 1 / 4, 1 / 9];
const PATIENCE = 3000; // milliseconds
const KIND_TITLES = {
  strategy: "Strategies",
  scripted: "Simple",
  policy: "Trained, looking ahead",
  search: "Search: takes its time",
  own: "This service’s own",
};

export class Start {
  /** `onBegin(id)` for a match that has been created, `onFile(file)` for a record. */
  constructor(board, agents, { onBegin, onFile }) {
    this.board = board;
    this.agents = agents;
    this.onBegin = onBegin;
    this.rules = new Map();
    this.form = byId("start");
    this.seats = recall("seats", null) ?? this.againstBots();
    this.rows = board.seats.map(({ seat }) => this.row(seat));
    fill(
      byId("seat-choices"),
      this.rows.map(({ element }) => element),
    );
    byId("preset-play").addEventListener("click", () => this.preset(this.againstBots()));
    byId("preset-watch").addEventListener("click", () => this.preset(this.allBots()));
    for (const input of this.form.elements.mode) input.addEventListener("change", () => this.showMode());
    byId("file").addEventListener("change", ({ target }) => {
      if (target.files.length) onFile(target.files[0]);
      target.value = "";
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.begin();
    });
    const mode = recall("mode", "journey");
    for (const input of this.form.elements.mode) input.checked = input.value === mode;
  }

  get mode() {
    return this.form.elements.mode.value;
  }

  againstBots() {
    const [easy, medium, hard] = this.levels();
    return [HUMAN, medium, easy, hard];
  }

  allBots() {
    const [easy, medium, hard] = this.levels();
    return [hard, medium, hard, easy];
  }

  /** The last three of what the service suggests: the weakest first. */
  levels() {
    return this.agents.suggested.slice(-3);
  }

  preset(seats) {
    this.seats = seats;
    this.showMode();
  }

  row(seat) {
    const select = h("select", { id: `seat-${seat}`, onchange: () => this.choose(seat, select.value) });
    const hint = h("p", { class: "muted hint", id: `hint-${seat}` });
    select.setAttribute("aria-describedby", hint.id);
    const label = h("label", { for: select.id }, seatLabel(this.board, seat));
    return { element: h("div", { class: "seat-row" }, label, select, hint), select, hint };
  }

  choose(seat, name) {
    this.seats[seat] = name;
    this.showHint(seat);
  }

  async show() {
    this.form.hidden = false;
    this.showEarlier();
    await this.showMode();
  }

  /** Offer the agents and clocks of the chosen mode. */
  async showMode() {
    const { mode } = this;
    const able = this.agents.agents.filter((agent) => agent.modes.includes(mode));
    const names = [HUMAN, ...able.map((agent) => agent.name)];
    const levels = able.filter(({ name }) => this.levels().includes(name));
    const byStrength = levels.toSorted(
      (a, b) => this.agents.suggested.indexOf(a.name) - this.agents.suggested.indexOf(b.name),
    );
    const rest = able.filter((agent) => !levels.includes(agent));
    this.rows.forEach(({ select }, seat) => {
      if (!names.includes(this.seats[seat])) this.seats[seat] = this.agents.suggested[0];
      const option = ({ name }, text = agentName(name)) =>
        h("option", { value: name, selected: name === this.seats[seat] }, text);
      const groups = Object.entries(KIND_TITLES).map(([kind, label]) => {
        const members = rest.filter((agent) => agent.kind === kind);
        return members.length
          ? h(
              "optgroup",
              { label },
              members.map((agent) => option(agent)),
            )
          : null;
      });
      fill(
        select,
        option({ name: HUMAN }, "You"),
        h(
          "optgroup",
          { label: "Levels" },
          byStrength.map((agent) => option(agent, capital(agentName(agent.name)))),
        ),
        ...groups,
      );
      this.showHint(seat);
    });
    if (!this.rules.has(mode)) this.rules.set(mode, await ask(`/v1/rules/${mode}`));
    if (mode === this.mode) this.showClocks(this.rules.get(mode).rules);
  }

  showClocks({ clock_seconds: most, turn_seconds: each }) {
    const select = byId("clock");
    const before = select.selectedIndex;
    const clocks = CLOCK_SHARES.map((share) => Math.floor((most * share) / each) * each);
    fill(
      select,
      clocks.map((seconds) =>
        h("option", { value: seconds }, `${clockText(seconds)}, ${seconds / each} turns in all`),
      ),
    );
    select.selectedIndex = Math.max(before, 0);
  }

  showHint(seat) {
    const { hint } = this.rows[seat];
    const agent = this.agents.agents.find(({ name }) => name === this.seats[seat]);
    const measured = agent?.strength[this.mode]?.[0];
    const share = measured
      ? ` First in ${percent(measured.share)} against ${measured.against}; par is 25%.`
      : "";
    hint.textContent = agent ? `${capital(agent.description)}.${share}` : "A person at this browser.";
  }

  async begin() {
    const { mode, seats } = this;
    remember("mode", mode);
    remember("seats", seats);
    byId("begin").disabled = true;
    const patience = setTimeout(() => (byId("patience").hidden = false), PATIENCE);
    try {
      const body = { mode, seats, clock_seconds: Number(byId("clock").value) };
      const { tokens, match } = await ask("/v1/matches", { body, once: true });
      const others = recall("matches", []).filter(({ id }) => id !== match.id);
      const kept = { id: match.id, mode, seats, tokens, begun: Date.now() };
      remember("matches", [kept, ...others].slice(0, 8));
      remember("shown", { id: match.id, turns: 0 }, "sessionStorage");
      this.onBegin(match.id);
    } finally {
      clearTimeout(patience);
      byId("patience").hidden = true;
      byId("begin").disabled = false;
    }
  }

  showEarlier() {
    const rows = recall("matches", []).map(({ id, mode, seats, begun }) => {
      const time = new Date(begun).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
      const who = seats.map((name) => (name === HUMAN ? "you" : agentName(name))).join(", ");
      return h("li", {}, h("a", { href: `#match=${id}` }, `${capital(mode)}, ${time}`), ` ${who}`);
    });
    const title = h("h3", {}, "Go back to a match of yours");
    fill(byId("earlier"), rows.length ? [title, h("ul", {}, rows)] : []);
  }
}

/** Return the tokens that this browser has for a match, by seat. */
export function tokensOf(id) {
  return recall("matches", []).find((kept) => kept.id === id)?.tokens ?? [];
}
