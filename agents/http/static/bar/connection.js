// Whether the worker is heard, and, where it is not, since when: what is shown is as old as that.

import { clean, el, fill } from "../basics/text.js";
import { inFull, timeOf } from "../basics/times.js";

export class Connection {
  #heard = null; // milliseconds since 1970; null: never

  constructor(chip, banner) {
    Object.assign(this, { chip, banner });
  }

  /** Something came from the worker. */
  heard() {
    this.#heard = Date.now();
  }

  /** The moment of what is shown, in words; "" where nothing was ever heard. */
  get since() {
    return this.#heard === null ? "" : inFull(this.#heard);
  }

  /** `state` is as `Live` tells it; `loaded`: there is something on the page that may be old. */
  show({ state, text, reason }, loaded) {
    if (state === "live") this.heard();
    this.chip.dataset.state = state;
    this.chip.lastElementChild.textContent = clean(text);
    this.chip.title = clean(reason ?? "The page follows every change.");
    document.body.dataset.state = state;
    const old = loaded && (state === "lost" || state === "waiting" || state === "unready");
    this.banner.hidden = !old;
    if (old && this.banner.dataset.reason !== reason) {
      const age = this.#heard === null ? [] : [" What you see is of ", timeOf(new Date(this.#heard).toISOString()), "."];
      if (state === "unready") fill(this.banner, el("b", {}, "Not up to date"), el("span", {}, `${reason}.`));
      else fill(this.banner, el("b", {}, "Old"), el("span", {}, `Nothing new is heard: ${reason}.`, age, " It is tried again."));
    }
    this.banner.dataset.reason = old ? reason : "";
  }
}
