// What if: buttons on hosts and nodes, a tab to try a plan, and the outcome beside today's map. Nothing is touched: the
// worker tries the plan on its own picture of the site.

import { postJson } from "./api.js";
import { icon } from "./icons.js";
import { outcomeOf } from "./outcome.js";
import { severityTag } from "./severities.js";
import { count, el, fill, natural } from "./text.js";

const SHOWN = 60;
const STEPS = [
  ["fail host", "If this host fails", (name) => ({ steps: [{ fail: `host/${name}` }], ha: true }), "host"],
  ["fail host without HA", "If it fails without HA", (name) => ({ steps: [{ fail: `host/${name}` }], ha: false }), "host"],
  ["maintain host", "If it enters maintenance", (name) => ({ steps: [{ maintain: name }], ha: true }), "host"],
  ["drain node", "If this node is drained", (name) => ({ steps: [{ drain: name }], ha: true }), "node"],
  ["fail node", "If this node fails", (name) => ({ steps: [{ fail: `node/${name}` }], ha: true }), "node"],
];
const TITLES = {
  "fail host": (name) => `host ${name} fails`,
  "fail host without HA": (name) => `host ${name} fails, and HA restarts nothing`,
  "maintain host": (name) => `host ${name} enters maintenance`,
  "drain node": (name) => `node ${name} is drained`,
  "fail node": (name) => `node ${name} fails`,
};

export class WhatIf {
  #run = 0;
  #ranking = null;
  #error = "";
  #busy = "";

  /** `shown(scene, title, answer)` shows an outcome, null ends it; `site()` is the site's name. */
  constructor(root, store, { shown, site, open }) {
    Object.assign(this, { root, store, shown, site, open });
    this.offered = false;
  }

  /** The buttons of a host or node, for its details. */
  actions(item) {
    if (!this.offered) return null;
    return el("div", { class: "actions", role: "group", "aria-label": "What if" }, STEPS.filter(([, , , kind]) => kind === item.kind).map(([what, text]) =>
      el("button", { type: "button", class: "act", "data-key": what, on: { click: () => this.#try(what, item.name) } }, icon("play"), text)));
  }

  /** The tab: a plan to choose, and the hosts ranked by what their failure means. */
  draw() {
    const what = el("select", { "aria-label": "What happens", "data-key": "what", on: { change: () => this.#names(what.value, names) } }, STEPS.map(([name]) => el("option", { value: name }, name)));
    const names = el("datalist", { id: "whatif-names" });
    const name = el("input", { list: "whatif-names", "aria-label": "Which", placeholder: "name", required: true, autocomplete: "off", spellcheck: "false" });
    this.#names(what.value, names);
    const submit = (event) => {
      event.preventDefault();
      this.#try(what.value, name.value.trim());
    };
    fill(
      this.root,
      el("p", { class: "note" }, "Try what a failure, a drain or maintenance would do. It is worked out on a copy: nothing is touched."),
      el("form", { class: "try", on: { submit } }, what, name, names, el("button", { class: "act" }, icon("play"), "Try it")),
      this.#busy && el("p", { class: "note", role: "status" }, this.#busy),
      this.#error && el("p", { class: "note bad", role: "alert" }, this.#error),
      this.store.hosts.size > 0 && [
        el("h3", {}, "Which host's failure would hurt most?"),
        el("button", { type: "button", class: "more", on: { click: () => this.#rank() } }, this.#ranking ? "Rank again" : "Let each host fail alone"),
        this.#ranking && this.#ranks(),
      ],
    );
  }

  #names(what, list) {
    const all = what.includes("host") ? [...this.store.hosts.values()] : [...this.store.nodes.values()];
    fill(list, all.map((each) => each.name).sort(natural).slice(0, 2000).map((value) => el("option", { value })));
  }

  async #ask(busy, body) {
    const run = (this.#run += 1);
    Object.assign(this, { offered: true });
    this.#busy = busy;
    this.#error = "";
    document.body.classList.add("busy");
    this.draw();
    try {
      const answer = await postJson("/api/v1/whatif", { site: this.site(), ...body });
      return run === this.#run ? answer : null;
    } catch (error) {
      if (run === this.#run) this.#error = String(error.message ?? error);
      return null;
    } finally {
      if (run === this.#run) {
        this.#busy = "";
        document.body.classList.remove("busy");
        this.draw();
      }
    }
  }

  async #try(what, name) {
    const [, , plan, kind] = STEPS.find(([each]) => each === what);
    const all = kind === "host" ? this.store.hosts : this.store.nodes;
    if (![...all.values()].some((each) => each.name === name)) {
      this.#error = `There is no ${kind} ${name}.`;
      this.draw();
      return;
    }
    const body = plan(name);
    const title = TITLES[what](name);
    const answer = await this.#ask(`Trying: ${title}…`, body);
    if (answer) this.shown(outcomeOf(this.store, body.steps, answer), title, answer);
    else if (this.#error) this.shown(null, title, null, this.#error);
  }

  async #rank() {
    const answer = await this.#ask("Letting every host fail, one at a time…", { each: "host", ha: true });
    if (answer) {
      this.#ranking = answer.items;
      this.draw();
    }
  }

  #ranks() {
    return el("ol", { class: "list ranks" }, this.#ranking.slice(0, SHOWN).map((each) => {
      const name = each.target.slice(each.target.indexOf("/") + 1);
      const hurts = [
        [Object.keys(each.pending).length, "pod", "without a node"],
        [each.newFindings.length, "new finding", ""],
      ].filter(([number]) => number);
      const said = hurts.length ? hurts.map(([number, thing, end]) => `${count(number, thing)} ${end}`.trim()).join(", ") : "no pod without a node, no new finding";
      return el("li", {}, el("button", { type: "button", class: "item", on: { click: () => this.#try("fail host", name) } },
        el("span", { class: "item-head" }, icon("host"), el("b", {}, name), el("small", {}, `${count(each.nodes.length, "node")}, ${count(each.pods, "pod")}`)),
        el("span", { class: hurts.length ? "message hurts" : "message" }, said)));
    }));
  }
}

/** The answer in figures, for the banner. */
export function figures(answer) {
  const pending = Object.keys(answer.pending).length;
  const parts = [
    [answer.vmMoves.filter((move) => move.to).length, "VM", "on another host"],
    [answer.moves.length, "pod", "on another node"],
    [pending, "pod", "without a node", true],
    [answer.blocked.length, "pod", "held by a budget", true],
    [answer.newFindings.length, "new finding", "", true],
    [answer.resolvedFindings.length, "finding", "resolved"],
  ].filter(([number]) => number);
  if (!parts.length) return [el("span", {}, "Nothing changes.")];
  return parts.map(([number, what, end, bad]) => el("span", { class: bad ? "hurts" : null }, `${count(number, what)} ${end}`.trim()));
}

/** The answer in full, for the side of the map. */
export function account(answer, open) {
  const link = (kind, id) => el("button", { type: "button", class: "link", on: { click: () => open({ kind, id }) } }, icon(kind), id);
  const part = (title, items) => items.length > 0 && [el("h3", {}, `${title} (${items.length.toLocaleString("en")})`), el("ul", { class: "list flat" }, items.slice(0, SHOWN)), items.length > SHOWN && el("p", { class: "note" }, `and ${items.length - SHOWN} more`)];
  const reasons = (pending) => Object.entries(pending).map(([reason, number]) => (number ? `${number} × ${reason}` : reason)).join("; ");
  return [
    part("New findings", answer.newFindings.map((finding) => el("li", {}, el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.rule)), el("span", { class: "message" }, finding.message)))),
    part("Without a node", Object.entries(answer.pending).map(([pod, pending]) => el("li", {}, link("pod", pod), el("span", { class: "message" }, reasons(pending))))),
    part("Held by disruption budgets", answer.blocked.map((each) => el("li", {}, link("pod", each.pod), el("span", { class: "message" }, each.budgets.join(", "))))),
    part("VMs that move", answer.vmMoves.map((move) => el("li", {}, `${move.vm}: ${move.from} → ${move.to ?? "nowhere: no host can take it"}`))),
    part("Pods that move", answer.moves.map((move) => el("li", {}, link("pod", move.pod), el("span", { class: "message" }, `${move.from ?? "no node"} → ${move.to} (${move.reason})`)))),
    part("Findings that end", answer.resolvedFindings.map((finding) => el("li", {}, el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.rule)), el("span", { class: "message" }, finding.message)))),
    part("Disruption budgets used", Object.entries(answer.budgets).map(([budget, use]) => el("li", {}, `${budget}: ${use.used} of ${use.allowedBefore} allowed`))),
  ];
}
