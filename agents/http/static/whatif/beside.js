// The outcome of a plan: its map beside today's, a banner that says that it is a simulation, and the account in words.

import { el, fill } from "../basics/text.js";
import { MapView } from "../map/view.js";

const NARROW = 800; // pixels up to which names do not fit beside one another

export class Beside {
  #map = null; // the map of the outcome, made when it is first wanted

  /** `map` is today's; `close()` ends the simulation. */
  constructor(byId, { palette, map, open, tip, close }) {
    Object.assign(this, { byId, palette, map, open, tip, close });
  }

  /** A plan: its scene, what it is called, its figures and its account; or the error that it ended with. */
  show({ scene, title, figures, account, error }) {
    const [banner, told] = [this.byId("banner"), this.byId("account")];
    banner.hidden = false;
    if (error) {
      this.#split(false);
      return fill(banner, el("b", {}, "Simulation"), el("span", { class: "hurts" }, `${title}: ${error}`), this.#closing());
    }
    fill(banner, el("b", {}, "Simulation"), el("span", { class: "if" }, title), el("span", { class: "figures" }, figures), el("span", { class: "soft" }, "Nothing is changed."), this.#closing());
    fill(told, el("h2", { tabindex: -1 }, title), account);
    this.#split(true);
    if (!this.#map) {
      const point = (...pointed) => this.tip.show(this.#map.scene, ...pointed);
      this.#map = new MapView(this.byId("after-map"), { palette: this.palette, pick: this.open, point, animate: false });
    }
    this.#asToday();
    this.step(scene);
  }

  /** The plan is shown after another step, which is about this item (null: none). */
  step(scene, item = null) {
    this.#map.show(scene);
    this.#map.mark(scene.marks);
    if (item) this.#map.reveal(item.kind, item.id);
  }

  hide() {
    this.byId("banner").hidden = true;
    fill(this.byId("account"));
    this.#split(false);
  }

  /** Today's map is grouped, drawn or coloured otherwise. */
  update() {
    if (this.byId("after").hidden) return;
    this.#asToday();
    this.#map.update(null);
  }

  #asToday() {
    const { group, plain, detail, level } = this.map;
    const named = detail === "auto" && level === "names" && innerWidth > NARROW;
    Object.assign(this.#map, { group, plain, detail: named ? "names" : detail });
  }

  themeChanged() {
    this.#map?.themeChanged();
  }

  #split(simulating) {
    this.byId("after").hidden = !simulating;
    this.byId("account").hidden = !simulating;
    this.byId("main").classList.toggle("simulating", simulating);
  }

  #closing() {
    return el("button", { type: "button", on: { click: () => this.close() } }, "Close");
  }
}
