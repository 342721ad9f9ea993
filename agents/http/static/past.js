// The time slider: the map and the findings as they were, worked out by the worker from the topics. It shows itself where
// the worker says how far back they reach: `/api/v1/history` gives {from, to} (RFC 3339), `/api/v1/map` and
// `/api/v1/findings` take `at=`.

import { getJson } from "./api.js";
import { icon } from "./icons.js";
import { Store } from "./store.js";
import { el, fill } from "./text.js";

const PAUSE = 200; // milliseconds after the last movement of the slider
const LOOK = 30_000; // milliseconds between two looks how far the topics reach
const STEP = 1000; // milliseconds between two stops of the slider

export class Past {
  #run = 0;
  #timer = 0;
  #range = null;

  /** `shown(scene, moment)` shows the past, null the present; `site()` is the site's name. */
  constructor(root, { shown, site }) {
    Object.assign(this, { root, shown, site });
    this.slider = el("input", { type: "range", step: STEP, "aria-label": "Time", on: { input: () => this.#moved() } });
    this.moment = el("output", {});
    this.live = el("button", { type: "button", class: "act", disabled: true, on: { click: () => this.back() } }, icon("play"), "Now");
    this.note = el("span", { class: "note", role: "status" });
    fill(root, el("span", { class: "past-title" }, "Time"), this.slider, this.moment, this.note, this.live);
    setInterval(() => this.offered && this.look(), LOOK);
  }

  get active() {
    return !this.live.disabled;
  }

  /** Ask how far the past reaches. */
  async look() {
    this.offered = true;
    const range = await getJson(`/api/v1/history?site=${encodeURIComponent(this.site())}`, undefined, { asks: true, quiet: true }).catch(() => null);
    if (!range?.from || !range.to) return;
    this.#range = range;
    const [from, to] = [Date.parse(range.from), Date.parse(range.to)];
    this.root.hidden = !(to > from);
    const atEnd = !this.active;
    // A slider stands on whole steps: its end is the first one that is not before now.
    const end = from + Math.ceil((to - from) / STEP) * STEP;
    Object.assign(this.slider, { min: from, max: end });
    if (atEnd) {
      this.slider.value = end;
      this.moment.textContent = "now";
    }
  }

  #moved() {
    const at = Number(this.slider.value);
    this.moment.textContent = new Date(at).toLocaleString();
    this.slider.setAttribute("aria-valuetext", this.moment.textContent);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(at), PAUSE);
  }

  async #show(at) {
    if (at >= Date.parse(this.#range.to)) return this.back();
    const run = (this.#run += 1);
    const query = `site=${encodeURIComponent(this.site())}&at=${encodeURIComponent(new Date(at).toISOString())}`;
    this.note.textContent = "working it out…";
    try {
      const asked = ["map", "findings"].map((what) => getJson(`/api/v1/${what}?${query}`, undefined, { asks: true }));
      const [map, findings] = await Promise.all(asked);
      if (run !== this.#run) return;
      const scene = new Store();
      scene.load(map, findings.findings, findings.notJudged);
      this.live.disabled = false;
      this.note.textContent = "";
      this.shown(scene, new Date(at));
    } catch (error) {
      if (run === this.#run) this.note.textContent = String(error.message ?? error);
    }
  }

  back() {
    this.#run += 1;
    clearTimeout(this.#timer);
    this.live.disabled = true;
    this.note.textContent = "";
    this.slider.value = this.slider.max;
    this.moment.textContent = "now";
    this.shown(null, null);
  }
}
