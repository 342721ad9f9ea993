// The details of one thing beside the map, in the scene that is shown: what is known at once, then what the worker says.

import { namespaceOf, refill } from "../basics/text.js";
import { getJson } from "../worker/api.js";
import { hostDetails } from "./host.js";
import { nodeDetails } from "./node.js";
import { podDetails } from "./pod.js";

const AGAIN = 800; // milliseconds between a change and a new question
const DRAWN = { host: hostDetails, node: nodeDetails, pod: podDetails };

export class Panel {
  #item = null;
  #moment = null;
  #run = 0;
  #timer = 0;
  #details = null;

  /**
   * `scene()` is what is shown, `site()` its name. `open(item)` opens a pod, node or host, `choose(id)` a finding;
   * `actions(item)` gives the buttons of a host or node; `need(nodes)` gets their pods.
   */
  constructor(root, { palette, scene, site, open, choose, actions, need }) {
    Object.assign(this, { root, palette, scene, site, open, choose, actions, need });
    this.all = false;
  }

  get item() {
    return this.#item;
  }

  /** Show a pod, node or host ({kind, id}), or nothing (null). */
  show(item) {
    const { moment } = this.scene();
    if (item?.kind === this.#item?.kind && item?.id === this.#item?.id && moment === this.#moment) return;
    const other = item?.id !== this.#item?.id;
    this.#run += 1; // whatever is on its way is about something else
    clearTimeout(this.#timer);
    Object.assign(this, { all: false });
    this.#item = item;
    this.#moment = moment;
    this.#details = null;
    this.root.hidden = item === null;
    if (item === null) return;
    this.#draw();
    this.#load();
    if (item.kind === "host") this.need([...this.scene().nodesOn(item.id)].map((node) => node.name));
    else if (item.kind === "node") this.need([item.id]);
    if (other) this.root.querySelector("h2")?.focus({ preventScroll: true });
  }

  /** All nodes of the verdict instead of the first ones. */
  showAll() {
    this.all = true;
    this.#draw();
  }

  /** Something changed; what is shown follows. `touched` are nodes, null for all. */
  update(touched) {
    if (this.#item === null) return;
    this.#draw();
    const { kind, id } = this.#item;
    const node = kind === "pod" ? this.scene().pods.get(id)?.node : kind === "node" ? id : undefined;
    if (touched !== null && node !== undefined && !touched.has(node)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), AGAIN);
  }

  async #load() {
    const run = (this.#run += 1);
    const { kind, id } = this.#item;
    const scene = this.scene();
    const known = { host: scene.hosts, node: scene.nodes, pod: scene.pods }[kind].has(id);
    if (!known && (kind !== "pod" || scene.whole)) return;
    const moment = scene.moment === null ? "" : `&at=${encodeURIComponent(scene.moment)}`;
    const path = kind === "pod"
      ? `pods/${encodeURIComponent(namespaceOf(id))}/${encodeURIComponent(id.slice(id.indexOf("/") + 1))}`
      : `${kind}s/${encodeURIComponent(id)}`;
    const asked = getJson(`/api/v1/${path}?site=${encodeURIComponent(this.site())}${moment}`, { asks: kind === "pod" || moment !== "", quiet: true });
    const details = await asked.catch((error) => ({ error: String(error.message ?? error) }));
    if (run !== this.#run) return;
    this.#details = details;
    if (!known && details.pod) this.need([details.pod.node]); // a link has led to a pod that nobody has looked at yet
    this.#draw();
  }

  #draw() {
    const { kind, id } = this.#item;
    const top = this.root.scrollTop;
    refill(this.root, () => DRAWN[kind](this, id, this.#details));
    this.root.scrollTop = top;
  }
}
