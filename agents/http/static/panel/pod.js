// The details of a pod: where it is, what it asks, every rule's word on every node, what was decided of it.

import { el, namespaceOf } from "../basics/text.js";
import { slotClass } from "../map/palette.js";
import { stateOf } from "../map/pods.js";
import { amountOf } from "./amounts.js";
import { findingsAbout, head, historyOf, link, table } from "./parts.js";
import { verdictOn } from "./verdict.js";

export function podDetails(panel, name, details) {
  const scene = panel.scene();
  const pod = scene.pods.get(name);
  if (!pod) return [head(panel, "pod", name, scene.whole ? "not there" : details?.error ?? "looking for it…"), historyOf(panel, details?.history)];
  const host = scene.hostOf(pod);
  const slot = slotClass(panel.palette.of(pod));
  const asked = Object.entries(details?.asked ?? {}).map(([resource, amount]) => [resource, amountOf(resource, amount)]);
  return [
    head(panel, "pod", name.slice(name.indexOf("/") + 1), `namespace ${namespaceOf(name)}`, el("span", {}, el("i", { class: `swatch ${slot}` }), pod.workload || "no workload"), stateOf(pod)),
    el("p", { class: "where" }, pod.node ? [link(panel, "node", pod.node, pod.node), host && [" on ", link(panel, "host", host.id, host.name)]] : "It waits for a node."),
    findingsAbout(panel, "pod", name),
    table("It asks for", asked),
    el("h3", {}, scene.moment === null ? "Where it may run" : "Where it might have run then"),
    verdictOn(panel, pod, details),
    historyOf(panel, details?.history),
  ];
}
