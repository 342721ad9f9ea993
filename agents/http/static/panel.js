// The details of one thing: a host, a node, a pod with every rule's word on every node, its scores and its history.

import { getJson } from "./api.js";
import { inTheWay } from "./because.js";
import { icon } from "./icons.js";
import { workloadKey, slotClass } from "./palette.js";
import { inOrder, stateOf } from "./pods.js";
import { adviceOn, severityTag } from "./severities.js";
import { count, el, fill, natural, namespaceOf, timeOf, workloadName } from "./text.js";

const AGAIN = 800; // milliseconds between a change and a new explanation
const ROWS = 60;

export class Panel {
  #item = null;
  #run = 0;
  #timer = 0;
  #document = null;
  #all = false;

  /** `actions(item)` gives the what-if buttons of a host or node; `opened(item)` is told what is shown, null for none. */
  constructor(root, store, { palette, open, opened, actions, site }) {
    Object.assign(this, { root, store, palette, open, opened, actions, site });
  }

  get item() {
    return this.#item;
  }

  show(item) {
    this.#run += 1; // whatever is on its way is about something else
    clearTimeout(this.#timer);
    this.#item = item;
    this.#document = null;
    this.#all = false;
    this.root.hidden = item === null;
    this.opened(item);
    if (item === null) return;
    this.#draw();
    this.#load();
    this.root.querySelector("h2")?.focus({ preventScroll: true });
  }

  /** Something changed; what is shown follows. */
  update(touched) {
    if (this.#item === null) return;
    this.#draw();
    if (this.#item.kind !== "pod") return;
    const node = this.store.pods.get(this.#item.id)?.node;
    if (touched !== null && node !== undefined && !touched.has(node)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), AGAIN);
  }

  async #load() {
    const run = (this.#run += 1);
    const { kind, id } = this.#item ?? {};
    if (kind !== "pod" && kind !== "node") return;
    const site = `site=${encodeURIComponent(this.site())}`;
    const [namespace, name] = [namespaceOf(id), id.slice(id.indexOf("/") + 1)];
    const path = kind === "pod"
      ? `/api/v1/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}?${site}`
      : `/api/v1/activity?${site}&subject=${encodeURIComponent(`node/${id}`)}`;
    if (kind === "pod" && !this.store.pods.has(id)) return;
    const document = await getJson(path, undefined, { asks: true, quiet: true }).catch((error) => ({ error: String(error.message ?? error) }));
    if (run !== this.#run) return;
    this.#document = document;
    this.#draw();
  }

  #draw() {
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const { kind, id } = this.#item;
    const top = this.root.scrollTop;
    fill(this.root, { host: () => this.#host(id), node: () => this.#node(id), pod: () => this.#pod(id) }[kind]());
    this.root.scrollTop = top;
    if (focused) this.root.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #head(kind, title, ...facts) {
    const close = el("button", { type: "button", class: "icon", "data-key": "close", "aria-label": "Close details", on: { click: () => this.open(null) } }, icon("close"));
    const subtitle = el("p", { class: "facts" }, facts.flat().filter(Boolean).map((fact) => el("span", {}, fact)));
    return el("header", { class: "panel-head" }, el("p", { class: "kind" }, icon(kind), kind, close), el("h2", { tabindex: -1, "data-key": "title" }, title), subtitle);
  }

  #link(kind, id, text) {
    return el("button", { type: "button", class: "link", "data-key": `${kind}:${id}`, on: { click: () => this.open({ kind, id }) } }, icon(kind), text);
  }

  #findings(kind, id) {
    const findings = this.store.about(kind, id);
    if (!findings.length) return null;
    return [
      el("h3", {}, count(findings.length, "finding")),
      el("ul", { class: "list flat" }, findings.slice(0, ROWS).map((finding) =>
        el("li", {}, el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.rule), timeOf(finding.firstSeen)), el("span", { class: "message" }, finding.message), el("span", { class: "note" }, adviceOn(finding).remedy)))),
    ];
  }

  #host(id) {
    const host = this.store.hosts.get(id);
    if (!host) return this.#head("host", id, "gone");
    const nodes = [...this.store.nodesOn(id)].sort((a, b) => natural(a.name, b.name));
    const pods = nodes.flatMap((node) => this.store.podsOn(node.name));
    const labels = Object.entries(host.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    return [
      this.#head("host", host.name, host.cluster && `vSphere cluster ${host.cluster}`, host.state, `${count(nodes.length, "node")}, ${count(pods.length, "pod")}`, labels),
      this.actions({ kind: "host", id, name: host.name }),
      this.#findings("host", id),
      el("h3", {}, "Nodes"),
      el("ul", { class: "list flat" }, nodes.map((node) => el("li", {}, this.#link("node", node.name, node.name), el("small", {}, count(this.store.podsOn(node.name).length, "pod"))))),
      this.#replicas(pods),
    ];
  }

  #node(name) {
    const node = this.store.nodes.get(name);
    if (!node) return this.#head("node", name, "gone");
    const host = this.store.hosts.get(node.host);
    const labels = Object.entries(node.labels ?? {}).map(([key, value]) => `${key.slice(key.lastIndexOf("/") + 1)} ${value}`);
    return [
      this.#head("node", name, node.vm && `VM ${node.vm}`, labels, node.ready === false && "not ready", node.cordoned && "cordoned"),
      el("p", { class: "where" }, host ? [this.#link("host", host.id, host.name), node.since && [" since ", timeOf(node.since)]] : "Its host is not known."),
      this.actions({ kind: "node", id: name, name }),
      this.#findings("node", name),
      el("h3", {}, count(this.store.podsOn(name).length, "pod")),
      this.#podList(this.store.podsOn(name)),
      this.#history(this.#document?.entries),
    ];
  }

  #podList(pods) {
    return el("ul", { class: "list flat pod-list" }, inOrder(pods, this.palette).map((pod) =>
      el("li", {}, el("i", { class: `swatch ${slotClass(this.palette.of(pod))}` }), this.#link("pod", pod.name, pod.name), stateOf(pod) !== "running" && el("small", {}, stateOf(pod)))));
  }

  /** Workloads with more than one replica here: what one failure takes together. */
  #replicas(pods) {
    const by = new Map();
    for (const pod of pods) if (!pod.pinned && pod.workload) by.set(workloadKey(pod), [...(by.get(workloadKey(pod)) ?? []), pod]);
    const several = [...by.values()].filter((each) => each.length > 1).sort((a, b) => b.length - a.length);
    if (!several.length) return null;
    return [
      el("h3", {}, "Workloads with several replicas here"),
      el("ul", { class: "list flat pod-list" }, several.slice(0, ROWS).map((each) =>
        el("li", {}, el("i", { class: `swatch ${slotClass(this.palette.of(each[0]))}` }), el("span", {}, `${namespaceOf(each[0].name)}/${workloadName(each[0].workload)}`), el("small", {}, each.length)))),
    ];
  }

  // -------------------------------------------------------------------------------------------------------- one pod
  #pod(name) {
    const pod = this.store.pods.get(name);
    if (!pod) return [this.#head("pod", name, "gone"), this.#history(this.#document?.history)];
    const host = this.store.hostOf(pod);
    const slot = slotClass(this.palette.of(pod));
    return [
      this.#head("pod", name.slice(name.indexOf("/") + 1), `namespace ${namespaceOf(name)}`, el("span", {}, el("i", { class: `swatch ${slot}` }), pod.workload || "no workload"), stateOf(pod)),
      el("p", { class: "where" }, pod.node ? [this.#link("node", pod.node, pod.node), host && [" on ", this.#link("host", host.id, host.name)]] : "It waits for a node."),
      this.#findings("pod", name),
      el("h3", {}, "Where it may run"),
      this.#verdict(pod),
      this.#history(this.#document?.history),
    ];
  }

  #verdict(pod) {
    const { verdict, error } = this.#document ?? {};
    if (error) return el("p", { class: "note bad" }, error);
    if (!verdict) return el("p", { class: "note" }, "Asking every rule about every node…");
    const rows = Object.entries(verdict.nodes).sort(([a, one], [b, other]) =>
      other.feasible - one.feasible || (one.physicalConflicts ?? 0) - (other.physicalConflicts ?? 0) || (other.total ?? 0) - (one.total ?? 0) || natural(a, b));
    const feasible = rows.filter(([, each]) => each.feasible).length;
    const { telling, same } = scoreColumns(rows.map(([, each]) => each.scores).filter(Boolean));
    const rules = telling;
    const own = rows.findIndex(([node]) => node === pod.node);
    const shown = this.#all ? rows : rows.slice(0, ROWS);
    if (own >= shown.length) shown.push(rows[own]);
    const judged = pod.node ? "Judged as if it were placed now, with the pod itself taken out." : "Judged against the pods that run now.";
    return [
      el("p", { class: "note" }, `${count(feasible, "node")} of ${rows.length} would take it. ${judged} Volumes of claims are not judged here.`),
      same.length > 0 && feasible > 1 && el("p", { class: "note" }, `Scored alike everywhere: ${same.join(", ")}.`),
      verdict.gated && el("p", { class: "note" }, "It has scheduling gates, and waits until they are removed."),
      verdict.error && el("p", { class: "note bad" }, verdict.error),
      el("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Every node", "data-key": "table" }, el("table", {},
        el("thead", {}, el("tr", {}, ["Node", "Fits", "Score", ...rules.map(ruleTitle)].map((title) => el("th", { scope: "col" }, title)))),
        el("tbody", {}, shown.map(([node, each]) => this.#row(pod, node, each, rules))))),
      rows.length > shown.length && el("button", { type: "button", class: "more", "data-key": "all", on: { click: () => { this.#all = true; this.#draw(); } } }, `Show all ${count(rows.length, "node")}`),
    ];
  }

  #row(pod, node, each, rules) {
    const host = this.store.hosts.get(this.store.nodes.get(node)?.host);
    const here = node === pod.node && el("span", { class: "flag here" }, "here");
    const place = el("th", { scope: "row" }, this.#link("node", node, node), here, host && el("small", {}, host.name));
    const named = (rule) => inTheWay(each.because?.[rule], namespaceOf(pod.name));
    if (!each.feasible) {
      const why = Object.entries(each.failing).map(([rule, reasons]) =>
        el("span", { class: "why" }, el("b", {}, rule), [reasons.join(", "), named(rule)].filter(Boolean).join(": ")));
      return el("tr", { class: node === pod.node ? "no here" : "no" }, place, el("td", {}, el("span", { class: "no" }, icon("close"), "no")), el("td", { colspan: rules.length + 1 }, why));
    }
    const conflicts = each.physicalConflicts ?? 0;
    const shares = conflicts > 0 && el("span", { class: "why shared" }, `shares its host with ${count(conflicts, "pod")} to keep apart: ${named("PhysicalHost")}`);
    return el("tr", { class: node === pod.node ? "here" : null }, place, el("td", {}, el("span", { class: "yes" }, icon("check"), "yes"), shares), el("td", { class: "total" }, each.total ?? "–"),
      rules.map((rule) => el("td", { class: "score" }, each.scores?.[rule] ?? "–", each.scores?.[rule] !== undefined && el("meter", { min: 0, max: 100, value: each.scores[rule], "aria-hidden": "true" }))));
  }

  #history(entries) {
    if (!entries) return null;
    return [
      el("h3", {}, "History"),
      entries.length
        ? el("ol", { class: "list happened" }, entries.map((entry) => el("li", { class: entry.tone ? `tone-${entry.tone}` : null, title: positions(entry) }, timeOf(entry.at), el("span", {}, entry.text))))
        : el("p", { class: "note" }, "Nothing was decided about it in what the topics remember."),
    ];
  }
}

/** The rules whose scores tell nodes apart, and those that score every node alike, as words. */
function scoreColumns(scores) {
  const rules = [...new Set(scores.flatMap((each) => Object.keys(each)))].sort();
  const alike = (rule) => scores.every((each) => each[rule] === scores[0][rule]);
  if (scores.length < 2) return { telling: rules, same: [] };
  return { telling: rules.filter((rule) => !alike(rule)), same: rules.filter(alike).map((rule) => `${rule} ${scores[0][rule]}`) };
}

/** The name of a rule in a narrow column: it may break between its words. */
function ruleTitle(rule) {
  return rule.split(/(?=[A-Z])/).flatMap((word, at) => (at ? [el("wbr"), word] : [word]));
}

function positions(entry) {
  const at = Object.entries(entry.snapshot ?? {}).map(([topic, offset]) => `${topic} ${offset}`);
  return `${entry.topic}${at.length ? `, decided from ${at.join(", ")}` : ""}`;
}
