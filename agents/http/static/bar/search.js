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
  /** `typed(text)` is called with what somebody types; `reveal(kind, id)` goes to something. */
  constructor({ form, input, output, scene, typed, reveal }) {
    Object.assign(this, { input, output, scene, reveal });
    this.lit = null; // what is found; null where nothing is searched for
    input.addEventListener("input", () => typed(input.value));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#goToFirst();
    });
  }

  get text() {
    return this.input.value.trim().toLowerCase();
  }

  /** Search for this; "" ends the search. */
  show(text) {
    if (this.input.value === text) return;
    this.input.value = text;
    this.find();
  }

  /** Search again: what is shown is other than before, or what is searched for. */
  find() {
    this.lit = null;
    if (!this.text) {
      this.output.textContent = "";
      return;
    }
    const scene = this.scene();
    if (!scene.whole) {
      this.output.textContent = "searching…";
      return;
    }
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
  }

  #goToFirst() {
    if (!this.lit) return;
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
