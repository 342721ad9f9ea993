// What if: buttons on hosts and nodes, a tab to choose a plan, and its outcome. Nothing is changed by any of it: the
// worker tries the plan on its own picture of the site, of now or of a moment of the past.

import { icon } from "../basics/icons.js";
import { count, el, fill, natural, refill, unjudged } from "../basics/text.js";
import { account, figures } from "./account.js";
import { Asking } from "./asking.js";
import { outcomeOf } from "./outcome.js";
import { PLANS, nameOf, planOf, textOf } from "./plans.js";

const SHOWN = 60;

export class WhatIf {
  #asking;
  #tried = ""; // the plan, moment and site whose outcome is shown or asked for
  #ranking = null;

  /**
   * `scene()` is what plans are tried on, `site()` its name. `plan(text)` is called with the plan that is wanted, "" for
   * none, `open(item)` opens a pod; `shown({scene, title, figures, account, error})` shows an outcome, null ends it.
   */
  constructor(root, { scene, site, plan, open, shown }) {
    Object.assign(this, { root, scene, site, plan, open, shown });
    this.offered = false;
    this.what = el("select", { "aria-label": "What happens", "data-key": "what", on: { change: () => this.#offerNames() } }, PLANS.map((plan, at) => el("option", { value: at }, nameOf(plan))));
    this.names = el("datalist", { id: "whatif-names" });
    this.name = el("input", { list: "whatif-names", "aria-label": "Which", "data-key": "name", placeholder: "name", required: true, autocomplete: "off", spellcheck: "false" });
    this.#asking = new Asking({ scene, site, draw: () => this.draw() });
  }

  /** The buttons of a host or node, for its details. */
  actions(item) {
    if (!this.offered) return null;
    return [
      el("div", { class: "actions", role: "group", "aria-label": "Simulations" }, PLANS.filter((plan) => plan.kind === item.kind).map((plan) =>
        el("button", { type: "button", class: "act", "data-key": nameOf(plan), on: { click: () => this.plan(textOf(plan, item.name)) } }, icon("play"), plan.button))),
      el("p", { class: "note" }, "Simulated on a copy; nothing is changed."),
    ];
  }

  /** The tab: a plan to choose, and the hosts ranked by what their failure means. */
  draw() {
    this.#offerNames();
    const submit = (event) => {
      event.preventDefault();
      this.#choose(this.#plan, this.name.value.trim());
    };
    const { busy, error } = this.#asking;
    const when = this.scene().moment === null ? "" : " Plans are tried on the site as it was at the moment that the slider shows.";
    refill(this.root, () => [
      el("p", { class: "note" }, `Simulate what a failure, a drain or maintenance would do. It is worked out on a copy; nothing is changed.${when}`),
      el("form", { class: "try", on: { submit } }, this.what, this.name, this.names, el("button", { class: "act", "data-key": "simulate" }, icon("play"), "Simulate")),
      busy && el("p", { class: "note", role: "status" }, busy),
      error && el("p", { class: "note bad", role: "alert" }, error),
      this.scene().hosts.size > 0 && [
        el("h2", { class: "sub" }, "Which host's failure would hurt most?"),
        el("button", { type: "button", class: "more", "data-key": "rank", on: { click: () => this.#rank() } }, this.#ranking ? "Simulate again" : "Simulate the failure of each host alone"),
        this.#ranking && [this.#ranks(), unjudged(this.#ranking)],
      ],
    ]);
  }

  /** The plan that is picked. */
  get #plan() {
    return PLANS[Number(this.what.value)];
  }

  #offerNames() {
    const all = this.#plan.kind === "host" ? [...this.scene().hosts.values()] : [...this.scene().nodes.values()];
    fill(this.names, all.map((each) => each.name).sort(natural).slice(0, 2000).map((value) => el("option", { value })));
  }

  #choose(plan, name) {
    const { kind } = plan;
    const all = kind === "host" ? this.scene().hosts : this.scene().nodes;
    if ([...all.values()].some((each) => each.name === name)) return this.plan(textOf(plan, name));
    this.#asking.error = `There is no ${kind} ${name}.`;
    this.draw();
  }

  /** Show the outcome of this plan (its text), or none (""). */
  async show(text) {
    const scene = this.scene();
    const tried = text && [text, scene.moment, this.site()].join("\n");
    if (tried === this.#tried) return;
    this.#tried = tried;
    this.#asking.drop();
    if (!text) return this.shown(null);
    const found = planOf(text);
    if (!found) return this.shown({ title: `If ${text}`, error: "the page knows no such plan" });
    const { plan, name } = found;
    const title = `If ${plan.title(name)}`;
    const steps = plan.steps(name);
    const answer = await this.#asking.ask("whatif", `Simulating: ${plan.title(name)}…`, { steps, ha: !plan.end });
    if (answer) this.shown({ scene: outcomeOf(scene, steps, answer), title, figures: figures(answer), account: account(answer, this.open) });
    else if (this.#asking.error && this.#tried === tried) this.shown({ title, error: this.#asking.error });
  }

  /** Another moment or site is shown: what was ranked was another one. */
  forget() {
    this.#ranking = null;
    this.#asking.error = "";
  }

  async #rank() {
    const answer = await this.#asking.ask("whatif", "Simulating the failure of every host, one at a time…", { each: "host", ha: true });
    if (answer) {
      this.#ranking = answer;
      this.draw();
    }
  }

  #ranks() {
    const [fails] = PLANS;
    return el("ol", { class: "list ranks" }, this.#ranking.items.slice(0, SHOWN).map((each) => {
      const name = each.target.slice(each.target.indexOf("/") + 1);
      const hurts = [
        [Object.keys(each.pending).length, "pod", "without a node"],
        [each.newFindings.length, "new finding", ""],
      ].filter(([number]) => number);
      const said = hurts.length ? hurts.map(([number, thing, end]) => `${count(number, thing)} ${end}`.trim()).join(", ") : "no pod without a node, no new finding";
      return el("li", {}, el("button", { type: "button", class: "item", "data-key": each.target, on: { click: () => this.plan(textOf(fails, name)) } },
        el("span", { class: "item-head" }, icon("host"), el("b", {}, name), el("small", {}, `${count(each.nodes.length, "node")}, ${count(each.pods, "pod")}`)),
        el("span", { class: hurts.length ? "message hurts" : "message" }, said)));
    }));
  }
}
