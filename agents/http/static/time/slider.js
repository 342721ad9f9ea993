// The bar of time: a slider with a tick where a finding opened or ended, a way from tick to tick, and a window to zoom.

import { icon } from "../basics/icons.js";
import { classesOf, rankOf } from "../basics/severities.js";
import { count, el, fill } from "../basics/text.js";
import { exactly, inFull } from "../basics/times.js";

const PAUSE = 200; // milliseconds after the last movement of the slider
const STEP = 1000; // milliseconds between two stops of the slider
const PLACES = 240; // ticks that are told apart
const MINUTE = 60_000;
const WINDOWS = [[0, "all"], [360 * MINUTE, "6 h"], [60 * MINUTE, "1 h"], [15 * MINUTE, "15 min"], [2 * MINUTE, "2 min"]];

export class Slider {
  #timer = 0; // runs while somebody moves the slider
  #reach = null; // [from, to] in milliseconds
  #at = null; // the moment that is shown; null: now

  /** `go(moment)` is called with the moment that is wanted (RFC 3339), null for now; `marks` are the ticks. */
  constructor(root, { go, marks }) {
    Object.assign(this, { root, go, marks });
    this.slider = el("input", { type: "range", step: STEP, "aria-label": "Time", "aria-keyshortcuts": ", .", on: { input: () => this.#moved() } });
    this.ticks = el("div", { class: "ticks", "aria-hidden": "true" });
    this.moment = el("output", { "aria-label": "Moment that is shown" });
    this.window = el("select", { "aria-label": "Window of time", on: { change: () => this.#draw() } }, WINDOWS.map(([span, name]) => el("option", { value: span }, name)));
    this.note = el("span", { class: "note", role: "status" });
    const button = (label, key, name, act) =>
      el("button", { type: "button", class: "icon", "aria-label": label, title: `${label} (${key})`, on: { click: act } }, icon(name));
    this.earlier = button("Earlier change of a finding", ",", "earlier", () => this.jump(-1));
    this.later = button("Later change of a finding", ".", "later", () => this.jump(1));
    this.now = el("button", { type: "button", class: "act", disabled: true, on: { click: () => go(null) } }, icon("play"), "Now");
    fill(root, this.earlier, el("div", { class: "track" }, this.ticks, this.slider), this.later, this.moment, this.window, this.note, this.now);
  }

  /** The past reaches from here to there (RFC 3339). */
  reach(from, to) {
    this.#reach = [Date.parse(from), Date.parse(to)];
    this.root.hidden = !(this.#reach[1] > this.#reach[0]);
    this.#draw();
  }

  /** This moment is shown (RFC 3339, null for now), and this is to be said of it. */
  show(moment, note = "") {
    this.#stopped();
    this.#at = moment === null || Number.isNaN(Date.parse(moment)) ? null : Date.parse(moment); // `10m` only the worker knows
    this.note.textContent = note;
    this.now.disabled = moment === null;
    this.#draw();
  }

  /** This is to be said of the moment that is shown; a movement of the slider goes on. */
  say(note) {
    this.note.textContent = note;
  }

  /** Go to the tick before (-1) or after (1) the moment that is shown; after the last one it is now. */
  jump(step) {
    if (this.root.hidden) return;
    const at = this.#at ?? Infinity;
    const mark = step < 0 ? this.marks.before(at) : this.marks.after(at);
    if (mark) this.go(new Date(mark.at).toISOString());
    else if (step > 0 && this.#at !== null) this.go(null);
  }

  /** There are new ticks, of just now. */
  update() {
    if (this.#reach) this.#reach[1] = Math.max(this.#reach[1], Date.now());
    this.#draw();
  }

  #moved() {
    const at = Number(this.slider.value);
    this.#tell(at);
    this.#stopped();
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.go(at >= this.#reach[1] ? null : new Date(at).toISOString());
      this.#draw();
    }, PAUSE);
  }

  #stopped() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  #tell(at) {
    this.moment.textContent = at === null ? "now" : inFull(at);
    this.moment.title = at === null ? "" : exactly(at);
    this.slider.setAttribute("aria-valuetext", this.moment.textContent);
  }

  #draw() {
    if (!this.#reach || this.#timer) return; // who moves the slider is not moved back: `go` draws it anew
    const [from, to] = this.#view();
    Object.assign(this.slider, { min: from, max: to });
    this.slider.value = this.#at ?? to;
    this.#tell(this.#at);
    this.#drawTicks(from, to);
    const at = this.#at ?? Infinity;
    this.earlier.disabled = !this.marks.before(at);
    this.later.disabled = this.#at === null;
  }

  /** What the slider spans: the window around the moment that is shown. A slider stands on whole steps: its end is the
   * first one that is not before the end of the window. */
  #view() {
    const [from, to] = this.#reach;
    const span = Number(this.window.value) || to - from;
    const middle = this.#at ?? to;
    const begin = Math.max(from, Math.min(middle - span / 2, to - span));
    return [begin, begin + Math.ceil((Math.min(to, begin + span) - begin) / STEP) * STEP];
  }

  #drawTicks(from, to) {
    const places = new Map();
    for (const mark of this.marks.all) {
      if (mark.at < from || mark.at > to) continue;
      const place = Math.round(((mark.at - from) / (to - from)) * PLACES);
      places.set(place, [...(places.get(place) ?? []), mark]);
    }
    fill(this.ticks, [...places].map(([place, marks]) => {
      const opened = marks.filter((mark) => mark.state === "opened");
      const [worst] = (opened.length ? opened : marks).sort((one, other) => rankOf(one.severity) - rankOf(other.severity));
      const what = opened.length ? `began ${classesOf(worst.severity)}` : "ended";
      const tick = el("i", { class: what, title: `${count(marks.length, "change")} at ${inFull(worst.at)}` });
      tick.style.left = `${(place / PLACES) * 100}%`;
      return tick;
    }));
  }
}
