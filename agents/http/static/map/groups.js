// By what hosts are grouped: chosen by somebody (then it is in the address), or, on a large site, by the page.

import { el, fill } from "../basics/text.js";

const FEW_HOSTS = 12; // up to so many the page groups nothing by itself
const NONE = "none"; // in the address: somebody wants no groups

export class Groups {
  #own = null; // what the page chose for this site

  /** `choose(value)` is called with what the address is to say. */
  constructor(select, { choose }) {
    this.select = select;
    select.addEventListener("change", () => choose(select.value || NONE));
  }

  /** Another site is shown. */
  forget() {
    this.#own = null;
  }

  /** The key to group by in this scene, where the address says `wanted`. */
  show(scene, wanted) {
    const keys = scene.groupings();
    this.#own ??= this.#choose(scene, keys);
    const value = wanted === NONE ? "" : keys.includes(wanted) ? wanted : this.#own;
    const values = ["", ...keys];
    if (values.join("\n") !== [...this.select.options].map((option) => option.value).join("\n")) {
      const title = (key) => (key === "" ? "no groups" : key === "cluster" ? "vSphere cluster" : key.slice(key.lastIndexOf("/") + 1));
      fill(this.select, values.map((key) => el("option", { value: key }, title(key))));
    }
    this.select.value = values.includes(value) ? value : "";
    return this.select.value;
  }

  #choose(scene, keys) {
    if (scene.hosts.size <= FEW_HOSTS) return "";
    return keys.includes("cluster") ? "cluster" : keys.find((key) => key.endsWith("/zone")) ?? "";
  }
}
