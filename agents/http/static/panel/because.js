// What stands in the way of a pod on a node, in words; the rules have said what it is.

import { clean } from "../basics/text.js";

const ON = new Set(["host", "esxi-host", "hostname", "node"]);
const NAMED = 3;

/** What one rule names on one node, for a pod of this namespace; "" where it names nothing. */
export function inTheWay(because, namespace) {
  const places = new Map();
  const said = [];
  for (const one of because ?? []) {
    if (one.key === undefined) said.push(thing(one, namespace));
    else places.set(place(one), [...(places.get(place(one)) ?? []), short(one.pod, namespace)]);
  }
  for (const [where, pods] of places) said.push(`${listed(pods)} ${pods.length === 1 ? "is" : "are"} ${where}`);
  return clean(said.join("; "));
}

function thing(one, namespace) {
  if (one.resource) return `asks for ${one.asked} ${one.resource}, ${one.free} of ${one.allocatable} is free`;
  if (one.taint) return `taint ${one.taint}`;
  if (one.port) return `${short(one.pod, namespace)} holds port ${one.port}`;
  return `asks for ${one.selector}, ${one.has === null ? "which is missing" : `not ${shown(one.has)}`}`;
}

function place({ key, value }) {
  const last = key.slice(key.lastIndexOf("/") + 1);
  return ON.has(last) ? `on ${shown(value)}` : `in ${last} ${shown(value)}`;
}

function shown(value) {
  return value || "''"; // a label may be empty
}

function short(pod, namespace) {
  return pod.startsWith(`${namespace}/`) ? pod.slice(namespace.length + 1) : pod;
}

function listed(pods) {
  if (pods.length > NAMED) return `${pods.slice(0, NAMED).join(", ")} and others`;
  return pods.length === 1 ? pods[0] : `${pods.slice(0, -1).join(", ")} and ${pods.at(-1)}`;
}
