// Repair: a tab to ask for a plan, and the plan beside today's map, step by step. Nothing is changed by any of it: the
// worker plans on its own picture of the site, of now or of a moment of the past.

import { icon } from "../basics/icons.js";
import { el, fill, natural, refill } from "../basics/text.js";
import { Asking } from "../whatif/asking.js";
import { getJson } from "../worker/api.js";
import { carriedOut, maintenanceFigures, maintenanceNotes, repairFigures, repairNotes, stepList } from "./account.js";
import { ALL_HOSTS, REPAIR, WITHOUT_EVICTIONS, ofCluster, planOf } from "./plans.js";
import { maintenanceSteps, repairSteps } from "./steps.js";
import { Stepper } from "./stepper.js";

const SELDOM = 2000; // milliseconds between two looks at what is carried out

const MADE = {
  repair: { title: () => "A repair", steps: repairSteps, figures: repairFigures, notes: repairNotes },
  maintain: { title: () => "Maintenance of hosts in turn", steps: maintenanceSteps, figures: maintenanceFigures, notes: maintenanceNotes },
};

export class Repair {
  #asking;
  #tried = ""; // the plan, moment and site that is shown or asked for
  #steps = null;
  #list = null;
  #underWay = el("p", { class: "note", role: "status" });
  #looked = 0;

  /**
   * `scene()` is what plans are made for, `site()` its name. `plan(text)` is called with the plan that is wanted,
   * `step(number)` with the step; `shown({scene, title, figures, account, error})` shows a plan, null ends it, and
   * `stepped(scene, item)` shows it after another step, which is about the item.
   */
  constructor(root, stepsRoot, { scene, site, plan, step, shown, stepped }) {
    Object.assign(this, { root, scene, site, plan, step, shown, stepped });
    this.offered = false;
    this.wanted = ""; // the step that the address names
    this.evictions = el("input", { type: "checkbox", checked: true, id: "repair-evictions", "data-key": "evictions" });
    this.which = el("select", { "aria-label": "Which hosts", "data-key": "which" });
    this.stepper = new Stepper(stepsRoot, { go: step });
    this.#asking = new Asking({ scene, site, draw: () => this.draw() });
  }

  /** Whether a text of the address is a plan of ours. */
  knows(text) {
    return this.offered && planOf(text) !== null;
  }

  /** The tab: which plan is wanted. */
  draw() {
    const { busy, error } = this.#asking;
    const clusters = [...new Set([...this.scene().hosts.values()].map((host) => host.cluster).filter(Boolean))].sort(natural);
    const picked = this.which.value;
    fill(this.which, el("option", { value: ALL_HOSTS }, "all hosts"), clusters.map((name) => el("option", { value: ofCluster(name), selected: ofCluster(name) === picked }, `cluster ${name}`)));
    const asks = (act) => ({ submit: (event) => { event.preventDefault(); act(); } });
    const when = this.scene().moment === null ? "" : " Plans are made for the site as it was at the moment that the slider shows.";
    refill(this.root, () => [
      el("p", { class: "note" }, `Plan the fewest vMotions and evictions that leave no rule broken, in an order that breaks nothing on the way. It is worked out on a copy; nothing is changed.${when}`),
      el("form", { class: "asks", on: asks(() => this.plan(this.evictions.checked ? REPAIR : WITHOUT_EVICTIONS)) },
        el("label", { for: "repair-evictions" }, this.evictions, "Pods may be evicted, too"), el("button", { class: "act", "data-key": "repair" }, icon("play"), "Plan a repair")),
      busy && el("p", { class: "note", role: "status" }, busy),
      error && el("p", { class: "note bad", role: "alert" }, error),
      this.scene().hosts.size > 0 && [
        el("h2", { class: "sub" }, "Maintenance of many hosts"),
        el("p", { class: "note" }, "Plan the fewest waves in which all of them have their turn: VMs move, no pod does, and every rule is kept."),
        el("form", { class: "asks", on: asks(() => this.plan(this.which.value)) }, this.which, el("button", { class: "act", "data-key": "maintain" }, icon("play"), "Plan maintenance")),
        this.#underWay,
      ],
    ]);
    this.#look();
  }

  /** Whether maintenance is being carried out, and how far it is. */
  async #look() {
    if (!this.scene().hosts.size || Date.now() - this.#looked < SELDOM) return;
    this.#looked = Date.now();
    const { maintenance } = await getJson("/api/v1/maintenance", { quiet: true }).catch(() => ({ maintenance: null }));
    fill(this.#underWay, maintenance && carriedOut(maintenance));
  }

  /** Show this plan (its text), or none (""), after a step: a number as text, "" where the plan itself opens. */
  async show(text, step) {
    const scene = this.scene();
    const tried = text && [text, scene.moment, this.site()].join("\n");
    if (tried === this.#tried) return this.#go(step);
    this.#tried = tried;
    this.wanted = step;
    this.#asking.drop();
    this.#steps = null;
    this.stepper.offer([]);
    if (!text) return this.shown(null);
    const { path, body, busy } = planOf(text);
    const made = MADE[path];
    const answer = await this.#asking.ask(path, busy, body);
    if (answer) this.#made(made, made.steps(scene, answer), answer);
    else if (this.#asking.error && this.#tried === tried) this.shown({ title: made.title(), error: this.#asking.error });
  }

  #made(made, steps, answer) {
    this.#steps = steps;
    this.#list = stepList(steps.all, this.step);
    this.stepper.offer(steps.all.map((each) => each.title));
    this.shown({ scene: steps.sceneAt(steps.opening), title: made.title(), figures: made.figures(answer), account: [this.#list, made.notes(answer)] });
    this.#go(this.wanted);
  }

  /** What is shown is the plan after this step. */
  #go(step) {
    this.wanted = step;
    if (!this.#steps) return;
    const { all, opening, sceneAt } = this.#steps;
    const number = /^\d+$/.test(step) ? Math.min(Number(step), all.length) : opening;
    this.stepper.show(number);
    [...this.#list.children].forEach((each, at) => {
      each.className = at + 1 === number ? "chosen" : "";
      if (at + 1 === number) each.firstChild.setAttribute("aria-current", "step");
      else each.firstChild.removeAttribute("aria-current");
    });
    this.stepped(sceneAt(number), number ? all[number - 1].about : null);
  }

  /** Another moment or site is shown: what was said of plans was of another one. */
  forget() {
    this.#asking.error = "";
  }
}
