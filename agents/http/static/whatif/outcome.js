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
  const stuck = answer.vmMoves.filter((move) => !move.to); // they stay where they are
  for (const step of steps) suffer(step, store, hosts, nodes, stuck);
  for (const move of answer.vmMoves) {
    const node = [...nodes.values()].find((each) => (each.vm || each.name) === move.vm && hosts.get(each.host)?.name === move.from);
    const host = byName.get(move.to);
    if (!node || !host) continue;
    nodes.set(node.name, { ...node, host: host.id, lost: false });
    marks.nodes.add(node.name);
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

/** What a step does to its own target: `host/NAME`, `node/NAME`, or a node's bare name. */
function suffer(step, store, hosts, nodes, stuck) {
  const [[kind, value]] = Object.entries(step);
  const slash = value.indexOf("/");
  const [what, name] = slash < 0 ? ["node", value] : [value.slice(0, slash), value.slice(slash + 1)];
  if (what === "host") {
    const host = hosts.get(store.hostNamed(name));
    if (!host) return;
    if (kind === "fail") hosts.set(host.id, { ...host, lost: true });
    else if (!stuck.some((move) => move.from === host.name)) hosts.set(host.id, { ...host, state: "maintenance" });
    if (kind === "fail") for (const node of nodes.values()) if (node.host === host.id) nodes.set(node.name, { ...node, lost: true });
    return;
  }
  const node = nodes.get(name);
  if (!node) return;
  if (kind === "fail") nodes.set(name, { ...node, lost: true });
  else if (kind === "drain" || kind === "cordon") nodes.set(name, { ...node, cordoned: true });
  else if (kind === "uncordon") nodes.set(name, { ...node, cordoned: false });
}
