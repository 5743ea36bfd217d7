// Which turn is shown: stepping, scrubbing, and playing at a pace.

import { byId, fill, h, recall, remember } from "./dom.js";

const PACE = 1200; // milliseconds for a turn at speed 1
const SPEEDS = [0.5, 1, 2, 4, 16];

export class Timeline {
  /** `onChange(isStep)` is called when another turn is shown; `isStep` says that somebody asked for it. */
  constructor(onChange) {
    this.onChange = onChange;
    this.cursor = 0;
    this.length = 0;
    this.isLive = false;
    this.isPlaying = false;
    this.timer = null;
    this.speed = recall("speed", 1);
    const speed = byId("speed");
    fill(
      speed,
      SPEEDS.map((each) => h("option", { value: each, selected: each === this.speed }, `${each}×`)),
    );
    speed.addEventListener("change", () => {
      this.speed = Number(speed.value);
      remember("speed", this.speed);
      this.schedule();
    });
    byId("slider").addEventListener("input", (event) => this.go(Number(event.target.value)));
    byId("to-start").addEventListener("click", () => this.go(0));
    byId("step-back").addEventListener("click", () => this.step(-1));
    byId("step-on").addEventListener("click", () => this.step(1));
    byId("to-end").addEventListener("click", () => this.goToEnd());
    byId("play-pause").addEventListener("click", () => this.toggle());
  }

  /** Begin with a match; to one that is live, turns are added. */
  begin(cursor, length, isLive, isPlaying) {
    this.cursor = cursor;
    this.length = length;
    this.isLive = isLive;
    this.isPlaying = isPlaying;
    this.schedule();
  }

  /** Whether the newest turn is shown. */
  get isAtEnd() {
    return this.cursor === this.length;
  }

  extend(length) {
    this.length = length;
    this.schedule();
  }

  /** No turns will be added any more. */
  finish() {
    this.isLive = false;
    this.schedule();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
  }

  go(cursor) {
    this.isPlaying = this.isLive && cursor >= this.length;
    this.show(Math.min(Math.max(cursor, 0), this.length), true);
  }

  step(by) {
    this.go(this.cursor + by);
  }

  goToEnd() {
    this.go(this.length);
  }

  toggle() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying && this.isAtEnd && !this.isLive) this.show(0, true);
    this.schedule();
  }

  show(cursor, isStep) {
    this.cursor = cursor;
    this.stop();
    this.schedule();
    this.onChange(isStep);
  }

  schedule() {
    if (this.isPlaying && this.isAtEnd && !this.isLive) this.isPlaying = false;
    if (!this.isPlaying || this.isAtEnd) this.stop();
    else if (!this.timer) {
      this.timer = setTimeout(() => {
        this.timer = null;
        if (this.isPlaying && !this.isAtEnd) this.show(this.cursor + 1, false);
      }, PACE / this.speed);
    }
    this.draw();
  }

  draw() {
    const slider = byId("slider");
    slider.max = this.length;
    slider.value = this.cursor;
    slider.setAttribute("aria-valuetext", `turn ${this.cursor} of ${this.length}`);
    slider.style.setProperty("--done", `${this.length ? (100 * this.cursor) / this.length : 0}%`);
    const button = byId("play-pause");
    button.classList.toggle("playing", this.isPlaying);
    button.setAttribute("aria-label", this.isPlaying ? "Pause" : "Play");
    for (const id of ["to-start", "step-back"]) byId(id).disabled = this.cursor === 0;
    for (const id of ["step-on", "to-end"]) byId(id).disabled = this.isAtEnd;
  }
}
