// What a simulated plan leaves behind, as a scene that the map can show: today's store with the plan's answer applied.

import { Store } from "../site/store.js";

/** The scene after the plan. `marks` are the pods and nodes that are elsewhere than today. */
export function outcomeOf(store, steps, answer) {
  const scene = new Store();
  const hosts = new Map(store.hosts);
  const nodes = new Map(store.nodes);
  const pods = new Map(store.pods);
  const byName = new Map([...hosts.values()].map((host) => [host.name, host]));
  const marks = { pods: new Set(), nodes: new Set() };
  for (const step of steps) suffer(step, hosts, nodes, byName);
  for (const move of answer.vmMoves) {
    const node = [...nodes.values()].find((each) => (each.vm || each.name) === move.vm && hosts.get(each.host)?.name === move.from);
    if (!node) continue;
    const host = byName.get(move.to);
    nodes.set(node.name, host ? { ...node, host: host.id, lost: false } : { ...node, lost: true });
    if (host) marks.nodes.add(node.name);
  }
  for (const move of answer.moves) {
    pods.set(move.pod, { ...(pods.get(move.pod) ?? { name: move.pod, workload: "", phase: "Running", ready: true }), node: move.to, phase: "Running", ready: true });
    marks.pods.add(move.pod);
  }
  for (const name of Object.keys(answer.pending)) {
    if (pods.has(name)) pods.set(name, { ...pods.get(name), node: "", phase: "Pending" });
  }
  const ended = new Set(answer.resolvedFindings.map((finding) => finding.id));
  const findings = [...store.findings.values()].filter((finding) => !ended.has(finding.id));
  const known = new Set(findings.map((finding) => finding.id));
  findings.push(...answer.newFindings.filter((finding) => !known.has(finding.id)));
  const map = { hosts: [...hosts.values()], nodes: [...nodes.values()], pods: [...pods.values()], vsphere: store.vsphere };
  scene.load(map, findings, answer.notJudged);
  scene.marks = marks;
  return scene;
}

/** What a step does to its own target. */
function suffer(step, hosts, nodes, byName) {
  const [[kind, value]] = Object.entries(step);
  const slash = value.indexOf("/");
  const [what, name] = kind === "fail" ? [value.slice(0, slash), value.slice(slash + 1)] : [kind === "maintain" ? "host" : "node", value];
  if (what === "host") {
    const host = byName.get(name);
    if (!host) return;
    hosts.set(host.id, kind === "fail" ? { ...host, lost: true } : { ...host, state: "maintenance" });
    if (kind === "fail") for (const node of nodes.values()) if (node.host === host.id) nodes.set(node.name, { ...node, lost: true });
    return;
  }
  const node = nodes.get(name);
  if (!node) return;
  if (kind === "fail") nodes.set(name, { ...node, lost: true });
  else if (kind === "drain" || kind === "cordon") nodes.set(name, { ...node, cordoned: true });
  else if (kind === "uncordon") nodes.set(name, { ...node, cordoned: false });
}
