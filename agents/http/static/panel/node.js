// The details of a node: its VM and host, what of it is asked, taints and conditions, its pods and its history.

import { count, el } from "../basics/text.js";
import { timeOf } from "../basics/times.js";
import { slotClass } from "../map/palette.js";
import { inOrder, stateOf } from "../map/pods.js";
import { mebibytes, used } from "./amounts.js";
import { findingsAbout, head, historyOf, link, table } from "./parts.js";

const WELL = { Ready: "True" }; // every other condition is well where it is False

export function nodeDetails(panel, name, details) {
  const scene = panel.scene();
  const node = scene.nodes.get(name);
  if (!node) return head(panel, "node", name, "not there");
  const host = scene.hosts.get(node.host);
  const labels = Object.entries(node.labels ?? {}).map(([key, value]) => `${key.slice(key.lastIndexOf("/") + 1)} ${value}`);
  return [
    head(panel, "node", name, labels, node.ready === false && "not ready", node.cordoned && "cordoned"),
    el("p", { class: "where" }, host ? [link(panel, "host", host.id, host.name), node.since && [" since ", timeOf(node.since)]] : "Its host is not known."),
    panel.actions({ kind: "node", id: name, name }),
    findingsAbout(panel, "node", name),
    details?.error && el("p", { class: "note bad" }, details.error),
    details?.node && machine(details),
    el("h3", {}, count(scene.numberOn(name), "pod")),
    podList(panel, scene.podsOn(name)),
    historyOf(panel, details?.history),
  ];
}

function machine({ vm, allocatable = {}, asked = {}, taints = [], conditions = [] }) {
  const size = vm && [vm.cpus ? count(vm.cpus, "vCPU") : "", mebibytes(vm.memoryMiB)].filter(Boolean).join(", ");
  return [
    table("Machine", [
      ["VM", vm && [vm.name, vm.power === "off" && " (off)"]],
      ["Size", size],
      ...Object.entries(allocatable).map(([resource, amount]) => [resource, used(resource, asked[resource] ?? 0, amount)]),
    ]),
    taints.length > 0 && [el("h3", {}, "Taints"), el("ul", { class: "list flat" }, taints.map((taint) => el("li", {}, el("code", {}, taint))))],
    conditions.length > 0 && [el("h3", {}, "Conditions"), el("ul", { class: "list flat conditions" }, conditions.map(condition))],
  ];
}

function condition({ type, status, reason }) {
  const well = status === (WELL[type] ?? "False");
  return el("li", { class: well ? null : "doubt" }, `${type}: ${status}`, reason && el("small", {}, reason));
}

function podList(panel, pods) {
  return el("ul", { class: "list flat pod-list" }, inOrder(pods, panel.palette).map((pod) =>
    el("li", {}, el("i", { class: `swatch ${slotClass(panel.palette.of(pod))}` }), link(panel, "pod", pod.name, pod.name), stateOf(pod) !== "running" && el("small", {}, stateOf(pod)))));
}
