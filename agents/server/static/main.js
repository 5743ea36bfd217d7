// The page: its two views, the address that leads back to a match, and problems in words.

import { ask, connection } from "./api.js";
import { byId } from "./dom.js";
import { listenForKeys } from "./keys.js";
import { readRecord } from "./record.js";
import { Start, tokensOf } from "./start.js";
import { Table } from "./table.js";
import { agentName, capital } from "./words.js";

const ID = /^#match=([0-9a-f]{32})$/;

function problem(error) {
  byId("problem-text").textContent = capital(error.message);
  byId("problem").hidden = false;
}

function clearProblem() {
  byId("problem").hidden = true;
}

function showView(name) {
  byId("start").hidden = name !== "start";
  byId("table").hidden = name !== "table";
  byId("download").hidden = true;
  if (name === "start") byId("mode-name").textContent = "";
  clearProblem();
  scrollTo(0, 0);
}

function name(match) {
  const agents = match.agents.map((agent) => (agent === "human" ? "human" : agentName(agent)));
  byId("mode-name").textContent = capital(match.mode);
  document.title = `${capital(match.mode)}: ${agents.join(", ")} – Retinue`;
}

async function main() {
  connection.addEventListener("lost", () => (byId("lost").hidden = false));
  connection.addEventListener("back", () => (byId("lost").hidden = true));
  byId("problem-close").addEventListener("click", clearProblem);
  addEventListener("error", ({ error }) => error && problem(error));
  addEventListener("unhandledrejection", ({ reason }) => problem(reason));

  const [board, agents] = await Promise.all([ask("/v1/board"), ask("/v1/agents")]);
  const table = new Table(board, agents, { onProblem: problem, onAgain: toStart });
  const start = new Start(board, agents, {
    onBegin: (id) => (location.hash = `match=${id}`),
    onFile: (file) => openFile(table, file),
  });
  listenForKeys(table);
  const route = () => openAddress(table, start).catch(problem);
  addEventListener("hashchange", route);
  await route();

  function toStart() {
    if (location.hash) location.hash = "";
    else route();
  }
}

/** Open what the address says: a match, or else the first view. */
async function openAddress(table, start) {
  const id = ID.exec(location.hash)?.[1];
  table.close();
  if (!id) {
    showView("start");
    document.title = "Retinue";
    await start.show();
    return;
  }
  const match = await table.openHosted(id, tokensOf(id));
  if (!match) return;
  showView("table");
  name(match);
  byId("download").href = `/v1/matches/${id}/record`;
  byId("download").hidden = false;
}

async function openFile(table, file) {
  try {
    const match = readRecord(await file.text());
    await table.open(match, 0);
    showView("table");
    name(match);
    byId("main").focus();
  } catch (error) {
    problem(new Error(`${error.message} (${file.name})`));
  }
}

main().catch(problem);
