// What the colours of the pods mean: workloads, as long as there are few enough to tell apart; else findings alone.

import { severities, severityTag } from "../basics/severities.js";
import { count, el, fill, workloadName, written } from "../basics/text.js";
import { slotClass, workloadKey } from "./palette.js";

const NAMED = 24; // workloads that have a colour and pattern of their own
const COLOURED = 100; // above so many, what has which colour says nothing
const PINNED = "\npinned";

const keyOf = (pod) => (pod.pinned ? PINNED : workloadKey(pod));

export class Legend {
  #signature = "";

  /** `light(matches)` lights the pods up for which it is true, null puts them out; `search(text)` searches. */
  constructor(root, { palette, light, search }) {
    Object.assign(this, { root, palette, light, search });
  }

  /** Draw it for a scene; true where findings alone are to have a colour. `choice` is workloads, findings, or "" where the page chooses. */
  show(scene, choice) {
    const workloads = scene.whole ? workloadsOf(scene) : { size: scene.workloads, values: () => [] };
    const plain = choice === "findings" || (!choice && workloads.size > COLOURED);
    const listed = plain ? [] : [...workloads.values()].sort((a, b) => this.palette.of(a.pod).order - this.palette.of(b.pod).order || (a.key < b.key ? -1 : 1));
    const wrong = plain ? severities().filter((each) => [...scene.findings.values()].some((finding) => finding.severity === each)) : [];
    const signature = [plain, workloads.size, ...wrong, ...listed.map((each) => `${each.key} ${each.number}`)].join("\n");
    if (signature === this.#signature) return plain;
    this.#signature = signature;
    if (plain) fill(this.root, el("span", { class: "key" }, `${count(workloads.size, "workload")}: only findings have a colour. `), wrong.map((each) => el("span", { class: "key" }, severityTag(each))));
    else if (listed.length > NAMED) fill(this.root, el("span", { class: "key" }, `${count(listed.length, "workload")} share the colours: point at a pod, or search.`));
    else fill(this.root, listed.map((each) => this.#key(each)));
    return plain;
  }

  #key({ key, pod, number, name }) {
    const glow = () => this.light((each) => keyOf(each) === key);
    const out = () => this.light(null);
    const on = { pointerenter: glow, pointerleave: out, focus: glow, blur: out, click: () => this.search(pod.pinned ? "" : name) };
    const title = `${key.replace("|", " ").trim()}: ${count(number, "pod")}`;
    return el("button", { type: "button", class: "key", title, on }, el("i", { class: `swatch ${slotClass(this.palette.of(pod))}` }), el("span", { class: "label" }, name), " ", el("small", {}, written(number)));
  }
}

function workloadsOf(scene) {
  const workloads = new Map();
  for (const pod of scene.pods.values()) {
    const key = keyOf(pod);
    const held = workloads.get(key);
    if (held) held.number += 1;
    else workloads.set(key, { pod, key, number: 1, name: pod.pinned ? "belongs to its node" : workloadName(pod.workload) || "no workload" });
  }
  return workloads;
}
