// The search: what of a scene has a text in its name, and the way to the first of it.

import { count } from "../basics/text.js";

const NOTHING = () => ({ pods: new Set(), nodes: new Set(), hosts: new Set() });

/** The pods that match, with the nodes and hosts that they are on. */
export function litBy(scene, matches) {
  const lit = NOTHING();
  for (const pod of scene.pods.values()) {
    if (!matches(pod)) continue;
    lit.pods.add(pod.name);
    if (pod.node) lit.nodes.add(pod.node);
    const host = scene.nodes.get(pod.node)?.host;
    if (host) lit.hosts.add(host);
  }
  return lit;
}

export class Search {
  /** `found(lit)` is called with what is to be lit, null for nothing; `reveal(kind, id)` goes there. */
  constructor({ form, input, output, scene, found, reveal }) {
    Object.assign(this, { input, output, scene, found, reveal });
    input.addEventListener("input", () => this.find());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#goToFirst();
    });
  }

  get text() {
    return this.input.value.trim().toLowerCase();
  }

  /** Search for this; "" ends the search. */
  set(text) {
    this.input.value = text;
    this.find();
  }

  find() {
    if (!this.text) {
      this.output.textContent = "";
      return this.found(null);
    }
    const scene = this.scene();
    const has = (...names) => names.some((name) => name?.toLowerCase().includes(this.text));
    const lit = litBy(scene, (pod) => has(pod.name, pod.workload));
    const [pods, nodes, hosts] = [lit.pods.size, named(scene.nodes, (node) => has(node.name, node.vm)), named(scene.hosts, (host) => has(host.name))];
    for (const host of hosts) lit.hosts.add(host.id);
    for (const node of [...nodes, ...hosts.flatMap((host) => [...scene.nodesOn(host.id)])]) {
      lit.nodes.add(node.name);
      if (node.host) lit.hosts.add(node.host);
      for (const pod of scene.podsOn(node.name)) lit.pods.add(pod.name);
    }
    const parts = [[hosts.length, "host"], [nodes.length, "node"], [pods, "pod"]].filter(([number]) => number);
    this.output.textContent = parts.map(([number, what]) => count(number, what)).join(", ") || "nothing";
    this.lit = lit;
    return this.found(lit);
  }

  #goToFirst() {
    if (!this.text) return;
    const scene = this.scene();
    const first = (names) => [...names].sort().find((name) => name.toLowerCase().includes(this.text));
    const [host] = named(scene.hosts, (each) => each.name.toLowerCase().includes(this.text));
    const node = first(this.lit.nodes);
    const pod = first(this.lit.pods) ?? [...this.lit.pods][0];
    if (host) this.reveal("host", host.id);
    else if (node) this.reveal("node", node);
    else if (pod) this.reveal("pod", pod);
  }
}

const named = (all, has) => [...all.values()].filter(has);
