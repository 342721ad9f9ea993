// Every rule's word on every node for one pod: nodes that would take it first, with their scores, then why the others
// would not.

import { icon } from "../basics/icons.js";
import { count, el, namespaceOf, natural, written } from "../basics/text.js";
import { inTheWay } from "./because.js";
import { ROWS, link } from "./parts.js";

export function verdictOn(panel, pod, details) {
  const { verdict, error } = details ?? {};
  if (error) return el("p", { class: "note bad" }, error);
  if (!verdict) return el("p", { class: "note" }, "Asking every rule about every node…");
  const nodes = Object.entries(verdict.nodes).sort(([a, one], [b, other]) =>
    other.feasible - one.feasible || (one.physicalConflicts ?? 0) - (other.physicalConflicts ?? 0) || (other.total ?? 0) - (one.total ?? 0) || natural(a, b));
  const feasible = nodes.filter(([, each]) => each.feasible).length;
  const { telling, same } = scoresOf(nodes.map(([, each]) => each.scores).filter(Boolean));
  const own = nodes.findIndex(([node]) => node === pod.node);
  const shown = panel.all ? nodes : nodes.slice(0, ROWS);
  if (own >= shown.length) shown.push(nodes[own]);
  const judged = pod.node ? "Judged as if it were placed now, with the pod itself taken out." : "Judged against the pods that run now.";
  return [
    el("p", { class: "note" }, `${count(feasible, "node")} of ${written(nodes.length)} would take it. ${judged} Volumes of claims are not judged here.`),
    same.length > 0 && feasible > 1 && el("p", { class: "note" }, `Scored alike everywhere: ${same.join(", ")}.`),
    verdict.gated && el("p", { class: "note" }, "It has scheduling gates, and waits until they are removed."),
    verdict.error && el("p", { class: "note bad" }, verdict.error),
    el("ul", { class: "verdict", "aria-label": "Every node" }, shown.map(([node, each]) => wordOn(panel, pod, node, each, telling))),
    nodes.length > shown.length && el("button", { type: "button", class: "more", "data-key": "all", on: { click: () => panel.showAll() } }, `Show all ${count(nodes.length, "node")}`),
  ];
}

function wordOn(panel, pod, node, each, telling) {
  const scene = panel.scene();
  const host = scene.hosts.get(scene.nodes.get(node)?.host);
  const here = node === pod.node;
  const named = (rule) => inTheWay(each.because?.[rule], namespaceOf(pod.name));
  return el("li", { class: here ? "here" : null },
    el("p", { class: "item-head" },
      link(panel, "node", node, node),
      host && el("small", {}, host.name),
      here && el("span", { class: "flag here" }, "here"),
      each.feasible
        ? el("span", { class: "yes" }, icon("check"), "fits", each.total !== undefined && el("b", { class: "total", title: "The weighted sum of the scores" }, written(each.total)))
        : el("span", { class: "no" }, icon("close"), "no")),
    each.feasible ? scored(each, telling, named) : reasonsOn(each, named));
}

/** Why a node would not take it: each rule that refuses, with its reasons and what stands in the way. */
function reasonsOn(each, named) {
  return Object.entries(each.failing).map(([rule, reasons]) =>
    el("p", { class: "why" }, el("b", {}, rule), " ", [reasons.join(", "), named(rule)].filter(Boolean).join(": ")));
}

function scored(each, telling, named) {
  const conflicts = each.physicalConflicts ?? 0;
  const scores = telling.filter((rule) => each.scores?.[rule] !== undefined);
  return [
    conflicts > 0 && el("p", { class: "why shared" }, `shares its host with ${count(conflicts, "pod")} to keep apart: ${named("PhysicalHost")}`),
    scores.length > 0 && el("dl", { class: "scores" }, scores.map((rule) =>
      el("div", {}, el("dt", {}, ruleTitle(rule)), el("dd", {}, each.scores[rule], el("meter", { min: 0, max: 100, value: each.scores[rule], "aria-hidden": "true" }))))),
  ];
}

/** The rules whose scores tell nodes apart, and those that score every node alike, as words. */
function scoresOf(scores) {
  const rules = [...new Set(scores.flatMap((each) => Object.keys(each)))].sort();
  const alike = (rule) => scores.every((each) => each[rule] === scores[0][rule]);
  if (scores.length < 2) return { telling: rules, same: [] };
  return { telling: rules.filter((rule) => !alike(rule)), same: rules.filter(alike).map((rule) => `${rule} ${scores[0][rule]}`) };
}

/** The name of a rule in a narrow column: it may break between its words. */
function ruleTitle(rule) {
  return rule.split(/(?=[A-Z])/).flatMap((word, at) => (at ? [el("wbr"), word] : [word]));
}
