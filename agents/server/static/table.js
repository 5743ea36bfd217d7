// A match on the table: the turn that is shown, the draft, what is asked of the service.

import { ask, askText, follow } from "./api.js";
import { Board } from "./board.js";
import { announce, byId, fill, h, recall, remember } from "./dom.js";
import { Geometry } from "./geometry.js";
import { Hand, showDirection } from "./hand.js";
import { Log, eventList, lineInWords } from "./log.js";
import { Pieces } from "./pieces.js";
import { readRecord } from "./record.js";
import { showOutcome, showPosition, showScores } from "./scores.js";
import { showStatus, triedInWords } from "./status.js";
import { Timeline } from "./timeline.js";
import { Turn, referee } from "./turn.js";
import { Why } from "./why.js";
import { Places, capital } from "./words.js";

const EXPIRED = "nobody played for so long that the match has expired; it can still be read";
const DIRECTIONS = ["forward", "backward"];

export class Table {
  /** `onProblem(error)` tells what went wrong, `onAgain()` is called for a new match. */
  constructor(board, agents, { onProblem, onAgain }) {
    this.onProblem = onProblem;
    this.onAgain = onAgain;
    this.lay(board);
    this.timeline = new Timeline((isStep) => this.moved(isStep));
    this.log = new Log(board, (turns) => this.timeline.go(turns));
    this.hand = new Hand({
      onChange: () => this.turn.changed(),
      onCommit: () => this.commit(),
      onAdvice: () => this.askAdvice(),
    });
    this.turn = new Turn(this.hand, { onChange: () => this.render(), onProblem });
    this.why = new Why(board, agents, {
      onPick: (question, turn) => this.tryOut(question, turn),
      onClose: () => this.endTrial(),
    });
    this.match = null;
    this.viewer = 0;
    this.direction = DIRECTIONS[0];
    this.forget();
    this.listen();
  }

  listen() {
    byId("now").addEventListener("click", () => this.timeline.goToEnd());
    byId("why-open").addEventListener("click", () => this.askWhy());
    byId("number-direction").addEventListener("click", () => this.renumber());
    byId("viewer").addEventListener("change", ({ target }) => {
      this.viewer = Number(target.value);
      this.render();
    });
  }

  /** Draw a board. */
  lay(board) {
    this.json = board;
    this.board = new Board(byId("board"), new Geometry(board));
    this.pieces = new Pieces(this.board, (seat, piece) => this.tapped(seat, piece));
  }

  forget() {
    this.stop?.();
    this.stop = null;
    this.trial = null;
    this.turn.forget();
  }

  /** Put a hosted match on the table and follow it; null if another was asked for meanwhile. */
  async openHosted(id, tokens) {
    const opening = (this.opening = Symbol(id));
    const [view, text] = await Promise.all([ask(`/v1/matches/${id}`), askText(`/v1/matches/${id}/record`)]);
    if (this.opening !== opening) return null;
    const match = readRecord(text);
    match.id = id;
    match.tokens = tokens;
    match.seed = view.seed;
    const isLive = view.status === "playing";
    const shown = recall("shown", null, "sessionStorage");
    const cursor = shown?.id === id ? Math.min(shown.turns, match.length) : match.length;
    if (isLive && view.turn === match.length) match.due = view.due;
    await this.open(match, cursor, { isLive, isPlaying: true });
    if (view.status === "expired") this.onProblem(new Error(EXPIRED));
    if (isLive) {
      this.stop = follow(id, () => match.length, {
        turn: (line) => this.take(match, line),
        due: ({ turn, due }) => this.expect(match, turn, due),
        end: (end) => this.end(match, end),
        gone: this.onProblem,
      });
    }
    return match;
  }

  /** Put a match on the table that nobody plays any more, or nobody here. */
  async open(match, cursor, { isLive = false, isPlaying = false } = {}) {
    const tiles = match.rules.home_path_tiles;
    if (tiles !== this.json.seats[0].home_path.length)
      this.lay(await ask(`/v1/board?home_path_tiles=${tiles}`));
    this.forget();
    this.why.close();
    this.log.clear();
    this.match = match;
    this.ours = match.agents.flatMap((_, seat) => (match.tokens[seat] ? [seat] : []));
    this.viewer = this.ours[0] ?? 0;
    this.direction = DIRECTIONS[0];
    byId("numbering").hidden = this.ours.length > 0;
    const option = ({ seat, name }) =>
      h("option", { value: seat, selected: seat === this.viewer }, capital(name));
    fill(byId("viewer"), this.json.seats.map(option));
    this.timeline.begin(cursor, match.length, isLive, isPlaying);
    this.render();
  }

  close() {
    this.opening = null;
    this.forget();
    this.timeline.stop();
    this.match = null;
  }

  // What the service tells

  take(match, line) {
    if (!match.append(line)) return;
    match.due = null;
    this.timeline.extend(match.length);
    this.render();
  }

  expect(match, turn, due) {
    if (turn !== match.length) return;
    match.due = due;
    this.timeline.extend(match.length);
    this.render();
    this.sayWhoseTurn();
  }

  end(match, { status, result, seed }) {
    match.due = null;
    match.result = result;
    match.seed = seed;
    this.timeline.finish();
    this.render();
    if (status === "expired") this.onProblem(new Error(EXPIRED));
  }

  // The turn that is shown

  get turns() {
    return this.timeline.cursor;
  }

  get isOurTurn() {
    return Boolean(this.match?.isOurs) && this.timeline.isAtEnd;
  }

  moved(isStep) {
    this.trial = null;
    if (this.match.id) remember("shown", { id: this.match.id, turns: this.turns }, "sessionStorage");
    this.render();
    const { match, turns } = this;
    if (this.isOurTurn) this.sayWhoseTurn();
    else if (turns && (isStep || this.ours.length || this.timeline.speed <= 1))
      announce(`${this.seatName(match.lines[turns - 1].seat)}, ${this.lineAt(turns)}`);
  }

  sayWhoseTurn() {
    if (!this.isOurTurn) return;
    const { rolled } = this.match.due;
    announce(
      `${this.seatName(this.match.due.seat)}, your turn. You rolled ${rolled.join(", ") || "no dice"}.`,
    );
  }

  seatName(seat) {
    return capital(this.json.seat_names[seat]);
  }

  lineAt(turns) {
    return lineInWords(this.match, turns - 1, this.json, this.places());
  }

  places() {
    return new Places(this.json, this.viewer, this.turn.draft?.choice.direction ?? this.direction);
  }

  renumber() {
    this.direction = DIRECTIONS.find((each) => each !== this.direction);
    this.render();
  }

  // The turn that is due here

  /** Keep a draft for the turn that is due, as long as it is. */
  prepareTurn() {
    const { match, turn } = this;
    if (this.isOurTurn) {
      turn.begin(match, this.direction);
      this.viewer = match.due.seat;
    } else if (turn.draft && turn.number !== match.length) {
      this.direction = turn.draft.choice.direction;
      turn.forget();
    }
  }

  tapped(seat, piece) {
    if (this.isOurTurn && seat === this.match.due.seat) this.hand.give(piece);
  }

  async commit() {
    const { match } = this;
    this.wasInHand = byId("hand").contains(document.activeElement);
    const line = this.isOurTurn ? await this.turn.commit() : null;
    if (!line || match !== this.match) return;
    this.why.close();
    this.take(match, line);
  }

  // Why, and trying out

  /** Ask why the turn that is shown was played. */
  askWhy() {
    const { match, turns } = this;
    if (!turns) return;
    const played = match.lines[turns - 1];
    const { seat, rolled } = played;
    this.why.open({ match, turns: turns - 1, seat, rolled, played, places: this.places() });
  }

  /** Ask what to do with the turn that is due here. */
  askAdvice() {
    if (!this.isOurTurn || !this.turn.draft) return;
    const { match, turns } = this;
    const { seat, rolled } = match.due;
    this.why.open({ match, turns, seat, rolled, played: null, places: this.places() });
  }

  /** Show where a turn would lead: as the draft if it can still be played, else as ghosts. */
  async tryOut(question, turn) {
    if (this.isOurTurn && question.turns === this.match.length) {
      this.hand.change((draft) => draft.take(turn));
      return;
    }
    this.timeline.isPlaying = false;
    this.timeline.schedule();
    const { line } = await referee(question.match, question.turns, question, turn);
    if (!line || !this.why.isOpen) return;
    this.trial = { turns: question.turns, seat: question.seat, line };
    this.render();
  }

  endTrial() {
    if (!this.trial) return;
    this.trial = null;
    this.render();
  }

  // Drawing

  render() {
    const { match } = this;
    if (!match) return;
    this.prepareTurn();
    const places = this.places();
    const turns = this.trial?.turns ?? this.turns;
    const state = match.stateAt(turns);
    const next = match.seatAt(turns);
    this.board.number(places);
    this.board.show(match, turns, next);
    this.renderPieces(state, turns);
    const trial = this.trial?.line ?? null;
    showStatus(this.json, match, { turns, trial, isOurs: this.isOurTurn, places });
    showScores(this.json, match, turns, this.ours);
    showPosition(this.json, match, turns, places);
    this.log.show(match, this.turns, places);
    showDirection(byId("number-direction"), this.direction);
    byId("why-open").disabled = !this.turns;
    this.renderHand(state, places);
    this.renderOutcome();
  }

  renderPieces(state, turns) {
    const isDrafting = this.isOurTurn && !this.trial;
    const { draft, preview } = this.turn;
    const drafted =
      this.trial ?? (isDrafting && preview?.line ? { seat: this.match.due.seat, ...preview } : null);
    const movable = isDrafting && this.hand.picked.length ? draft.legal.guards : [];
    this.pieces.show({
      state,
      draft: drafted?.line.after,
      seat: drafted?.seat ?? this.match.due?.seat,
      last: turns && !this.trial ? this.match.lines[turns - 1] : null,
      before: turns ? this.match.stateAt(turns - 1) : null,
      movable: movable.flatMap((may, guard) => (may ? [guard] : [])),
    });
  }

  renderHand(state, places) {
    const { match } = this;
    const { draft, preview } = this.turn;
    const isActive = this.isOurTurn && !this.trial;
    this.showHand(isActive);
    this.renderAway(!isActive && this.ours.length > 0 && !(match.result && this.timeline.isAtEnd));
    if (!isActive) return;
    const { seat, rolled } = match.due;
    this.hand.show({ seat, rolled, state, places, preview });
    const text = draft.isEmpty
      ? "nothing moves; the rolls stay in your store"
      : (preview?.refused ??
        (preview ? triedInWords(this.json, match, match.length, preview.line, places) : "…"));
    byId("preview").textContent = capital(text);
    byId("preview").classList.toggle("refused", Boolean(preview?.refused));
  }

  /** Show or hide the hand; whoever played the last turn from within comes back to it. */
  showHand(isActive) {
    const hand = byId("hand");
    if (hand.hidden === !isActive) return;
    hand.hidden = !isActive;
    if (isActive && this.wasInHand && document.activeElement === document.body)
      hand.focus({ preventScroll: true });
  }

  /** Show what happens while others move. */
  renderAway(isShown) {
    const { match, turns } = this;
    byId("away").hidden = !isShown;
    if (!isShown) return;
    const behind = match.length - turns;
    const line = match.lines[turns - 1];
    byId("away-text").textContent = line
      ? `${this.seatName(line.seat)}’s turn ${turns}`
      : "The first turn is due";
    fill(byId("away-events"), line ? eventList(line, this.json) : []);
    byId("now").hidden = !behind;
  }

  renderOutcome() {
    const { match } = this;
    const isShown = Boolean(match.result) && this.timeline.isAtEnd;
    const outcome = byId("outcome");
    if (isShown && outcome.hidden) announce(showOutcome(this.json, match, this.onAgain));
    outcome.hidden = !isShown;
  }
}
