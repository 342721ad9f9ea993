// How the pods of one node are drawn: chips with names, or blocks; where there are thousands they are dots (dots.js).

import { classesOf } from "../basics/severities.js";
import { el, natural, shortName } from "../basics/text.js";
import { slotClass, workloadKey } from "./palette.js";

export const NAMES_UP_TO = 160; // pods of a site, without those that belong to their node
export const BLOCKS_UP_TO = 2000;

/** The detail that a number of pods is shown in, unless it is chosen. */
export function detailFor(pods) {
  if (pods <= NAMES_UP_TO) return "names";
  return pods <= BLOCKS_UP_TO ? "blocks" : "dense";
}

/** Pods in the order in which they are drawn: replicas side by side, what belongs to the node last. */
export function inOrder(pods, palette) {
  const keyed = pods.map((pod) => [palette.of(pod).order, workloadKey(pod), pod]);
  keyed.sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : natural(a[2].name, b[2].name)));
  return keyed.map(([, , pod]) => pod);
}

/** What a pod does, in a word. */
export function stateOf(pod) {
  if (pod.leaving) return "terminating";
  if (!pod.node) return "waiting";
  if (pod.phase !== "Running") return pod.phase.toLowerCase();
  return pod.ready ? "running" : "not ready";
}

export function podLabel(pod, findings) {
  const wrong = findings.length ? `, ${findings.map((each) => each.severity).join(", ")}` : "";
  return `pod ${pod.name}, ${pod.workload || "no workload"}, ${stateOf(pod)}${wrong}`;
}

/** Bring the chips or blocks of a node up to date; an element stays as long as its pod does. */
export function drawElements(holder, pods, scene, palette, detail, depth = 3) {
  const known = holder.pods ?? new Map();
  const first = !holder.pods;
  const wanted = new Map();
  let at = 0;
  for (const pod of inOrder(pods, palette)) {
    const findings = scene.about("pod", pod.name);
    const severity = scene.severity("pod", pod.name);
    const named = detail === "names" && !pod.pinned;
    const signature = [named, pod.workload, stateOf(pod), severity, findings.length].join("|");
    let element = known.get(pod.name);
    if (!element || element.signature !== signature) {
      const fresh = makePod(pod, named, severity, findings, palette);
      fresh.ariaLevel = depth;
      if (element) {
        fresh.tabIndex = element.tabIndex;
        const focused = element === document.activeElement;
        element.replaceWith(fresh);
        if (focused) fresh.focus({ preventScroll: true });
      } else if (!first) {
        fresh.classList.add("new");
      }
      fresh.signature = signature;
      element = fresh;
    }
    wanted.set(pod.name, element);
    if (holder.children[at] !== element) holder.insertBefore(element, holder.children[at] ?? null);
    at += 1;
  }
  for (const [name, element] of known) if (!wanted.has(name)) element.remove();
  while (holder.children.length > at) holder.lastElementChild.remove();
  holder.pods = wanted;
}

function makePod(pod, named, severity, findings, palette) {
  const [label, tail] = shortName(pod);
  const classes = ["pod", slotClass(palette.of(pod)), named ? "named" : "block"];
  if (stateOf(pod) !== "running") classes.push("hollow");
  if (pod.leaving) classes.push("leaving");
  if (severity) classes.push("wrong", classesOf(severity));
  const element = el(
    "div",
    { class: classes.join(" "), role: "treeitem", tabindex: -1, "aria-label": named ? `${[label, tail].filter(Boolean).join(" ")}: ${podLabel(pod, findings)}` : podLabel(pod, findings) },
    el("i", { class: "swatch" }),
    named && el("span", { class: "label" }, label),
    named && tail && [" ", el("span", { class: "tail" }, tail)],
  );
  element.item = { kind: "pod", id: pod.name };
  return element;
}
