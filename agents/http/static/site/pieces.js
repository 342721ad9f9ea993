// The pods of a large site, asked for when somebody looks at them: those of the nodes in view, of what is opened, or all
// of them where a search, a plan or the colours of workloads need them.

import { getJson } from "../worker/api.js";

const TOGETHER = 60; // nodes of one question: their names are in its address

export class Pieces {
  #wanted = new Set(); // nodes whose pods are asked for next
  #asked = new Set(); // nodes whose pods are on their way
  #all = null; // the promise of all
  #coming = new Set(); // the promises of what is on its way

  /** `site()` is the name of the site whose pods the store holds. */
  constructor(store, { site }) {
    Object.assign(this, { store, site });
  }

  /** Everything was read anew. */
  forget() {
    this.#wanted.clear();
    this.#asked = new Set();
    this.#all = null;
  }

  /** Get the pods of these nodes, where they are not here. What is wanted in one go is asked for together. */
  want(nodes) {
    if (!this.#wanted.size) queueMicrotask(() => this.#askTogether());
    for (const name of nodes) if (this.store.lacks(name) && !this.#asked.has(name)) this.#wanted.add(name);
  }

  #askTogether() {
    const nodes = [...this.#wanted];
    this.#wanted.clear();
    for (let at = 0; at < nodes.length; at += TOGETHER) {
      const coming = this.#ask(nodes.slice(at, at + TOGETHER)).then(() => this.#coming.delete(coming));
      this.#coming.add(coming);
    }
  }

  /** Once what is asked for by now is there. */
  settled() {
    return Promise.all(this.#coming);
  }

  async #ask(nodes) {
    const asked = this.#asked;
    for (const name of nodes) asked.add(name);
    await this.store.take(nodes, () => this.#get(nodes.map((name) => `&node=${encodeURIComponent(name)}`).join("")));
    for (const name of nodes) asked.delete(name);
  }

  /** Get all pods: true once they are here, and were not before. */
  async whole() {
    if (this.store.whole) return false;
    this.#all ??= this.store.take(null, () => this.#get(""));
    const [all, came] = [this.#all, await this.#all];
    if (!came && all === this.#all) this.#all = null; // it is tried again
    return came;
  }

  #get(more) {
    return getJson(`/api/v1/map?site=${encodeURIComponent(this.site())}${more}`);
  }
}
