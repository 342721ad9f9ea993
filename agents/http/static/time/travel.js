// Between now and the past: which moment is shown, the slider for it, and when findings opened and ended.

import { count, leftOut } from "../basics/text.js";
import { inFull } from "../basics/times.js";
import { Marks } from "./marks.js";
import { reachOf, sceneAt } from "./past.js";
import { Slider } from "./slider.js";

const LOOK = 30_000; // milliseconds between two looks how far the topics reach

export class Travel {
  #run = 0;
  #wanted = "";
  #asking = false;

  /**
   * `present` is the store of now. `go(moment)` is called with the moment that is wanted (RFC 3339; null: now);
   * `arrived(scene, error)` with the scene of the moment that `to` named, or null and why it cannot be told.
   */
  constructor(root, { scene, site, present, go, arrived }) {
    Object.assign(this, { scene, site, present, arrived });
    this.offered = false;
    this.marks = new Marks();
    this.slider = new Slider(root, { go, marks: this.marks });
    present.addEventListener("change", ({ detail }) => this.#seen(detail));
    setInterval(() => this.look(), LOOK);
  }

  /** Another site is there: its past is another one. */
  begin() {
    this.#run += 1;
    this.#asking = false;
    this.#wanted = "";
    this.marks.forget();
    this.look();
  }

  /** Ask how far the past reaches, and what happened in it. */
  async look() {
    if (!this.offered || document.hidden) return;
    const site = this.site();
    const reach = await reachOf(site);
    if (!reach || site !== this.site()) return;
    this.marks.add(reach.marks);
    this.present.remember(reach.resolved);
    this.slider.reach(reach.from, reach.to);
  }

  /** Go to a moment (RFC 3339 or `10m`, "" for now): true where it is shown already, else `arrived` is called. */
  to(moment) {
    if (moment === this.#wanted) return !this.#asking;
    this.#wanted = moment;
    this.#run += 1;
    this.#asking = moment !== "";
    this.slider.show(moment || null, moment ? "working it out…" : "");
    if (moment) this.#fetch(moment, this.#run);
    else this.arrived(this.present);
    return false;
  }

  async #fetch(moment, run) {
    const found = await sceneAt(this.site(), moment).catch((error) => String(error.message ?? error));
    if (run !== this.#run) return;
    this.#asking = false;
    this.slider.say("");
    if (typeof found === "string") this.arrived(null, found);
    else {
      if (Number.isNaN(Date.parse(moment))) this.slider.show(found.moment);
      this.arrived(found);
    }
  }

  /** What is to be said of the moment that is shown. */
  says() {
    const scene = this.scene();
    const open = scene.findings.size ? `${count(scene.findings.size, "finding")} open then` : "no finding open then";
    return [inFull(scene.moment), open, leftOut(scene)].filter(Boolean).join(" · ");
  }

  /** Findings have opened or ended since the page was opened. */
  #seen({ opened = [], ended = [] }) {
    if (!opened.length && !ended.length) return;
    const mark = (state, at) => (finding) => ({ at: finding[at], finding: finding.id, state, severity: finding.severity });
    this.marks.add([...opened.map(mark("opened", "firstSeen")), ...ended.map(mark("resolved", "resolvedAt"))]);
    this.slider.update();
  }
}
