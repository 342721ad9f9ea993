// The details of a host: its size, its nodes, and the workloads of which one failure takes several replicas.

import { count, el, namespaceOf, natural, workloadName, written } from "../basics/text.js";
import { slotClass, workloadKey } from "../map/palette.js";
import { mebibytes, used } from "./amounts.js";
import { ROWS, findingsAbout, head, link, table } from "./parts.js";

export function hostDetails(panel, id, details) {
  const scene = panel.scene();
  const host = scene.hosts.get(id);
  if (!host) return head(panel, "host", id, "not there");
  const nodes = [...scene.nodesOn(id)].sort((a, b) => natural(a.name, b.name));
  const pods = nodes.flatMap((node) => scene.podsOn(node.name));
  const labels = Object.entries(host.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return [
    head(panel, "host", host.name, host.cluster && `vSphere cluster ${host.cluster}`, host.state, `${count(nodes.length, "node")}, ${count(nodes.reduce((sum, node) => sum + scene.numberOn(node.name), 0), "pod")}`, labels),
    panel.actions({ kind: "host", id, name: host.name }),
    findingsAbout(panel, "host", id),
    figures(details),
    el("h3", {}, "Nodes"),
    nodes.length
      ? el("ul", { class: "list flat" }, nodes.map((node) => el("li", {}, link(panel, "node", node.name, node.name), el("small", {}, count(scene.numberOn(node.name), "pod")))))
      : el("p", { class: "note" }, "None runs on it."),
    replicas(panel, pods),
  ];
}

function figures(details) {
  if (!details?.host) return null;
  const { cpuMhz, memoryMiB, vms = [], asked = {} } = details;
  const memory = vms.reduce((sum, vm) => sum + (vm.memoryMiB ?? 0), 0);
  const cpus = vms.reduce((sum, vm) => sum + (vm.cpus ?? 0), 0);
  return table("Size", [
    ["CPU", cpuMhz ? `${written(cpuMhz)} MHz` : ""],
    ["Memory", mebibytes(memoryMiB)],
    ["VMs of nodes", vms.length && [count(vms.length, "VM"), cpus ? `, ${count(cpus, "vCPU")}` : "", memory ? `, ${mebibytes(memory)}` : ""]],
    ["Asked by pods", asked.memory && memoryMiB ? used("memory", asked.memory, memoryMiB * 1024 * 1024) : ""],
  ]);
}

/** Workloads with more than one replica here: what one failure takes together. */
function replicas(panel, pods) {
  const by = new Map();
  for (const pod of pods) if (!pod.pinned && pod.workload) by.set(workloadKey(pod), [...(by.get(workloadKey(pod)) ?? []), pod]);
  const several = [...by.values()].filter((each) => each.length > 1).sort((a, b) => b.length - a.length);
  if (!several.length) return null;
  return [
    el("h3", {}, "Workloads with several replicas here"),
    el("ul", { class: "list flat pod-list" }, several.slice(0, ROWS).map((each) =>
      el("li", {}, el("i", { class: `swatch ${slotClass(panel.palette.of(each[0]))}` }), el("span", {}, `${namespaceOf(each[0].name)}/${workloadName(each[0].workload)}`), el("small", {}, written(each.length))))),
  ];
}
