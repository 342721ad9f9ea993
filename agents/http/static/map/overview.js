// Every host as a small square, for sites that do not fit a screen: where it is wrong, and the way there.

import { classesOf } from "../basics/severities.js";
import { clean } from "../basics/text.js";

export const MANY_HOSTS = 24; // hosts that are too many for a screen

export class Overview {
  /** `pick(id)` is called with the host that is wanted. */
  constructor(root, { pick }) {
    this.root = root;
    root.addEventListener("click", (event) => event.target.host !== undefined && pick(event.target.host));
  }

  /** `hosts` in the order of the map. */
  show(scene, hosts) {
    this.root.hidden = scene.hosts.size <= MANY_HOSTS;
    if (this.root.hidden) return;
    while (this.root.children.length > hosts.length) this.root.lastElementChild.remove();
    while (this.root.children.length < hosts.length) this.root.append(document.createElement("i"));
    hosts.forEach((host, at) => {
      const cell = this.root.children[at];
      if (cell.host !== host.id) cell.title = clean(host.name);
      cell.host = host.id;
      const name = classesOf(scene.severity("host", host.id));
      if (cell.className !== name) cell.className = name;
    });
  }
}
