// Questions about plans: the worker works them out on the picture that is shown. Only the newest question is waited for;
// `busy` and `error` are what is to be said meanwhile and afterwards.

import { postJson } from "../worker/api.js";

export class Asking {
  #run = 0;
  busy = "";
  error = "";

  /** `scene()` is what plans are tried on, `site()` its name; `draw()` is called when there is something else to say. */
  constructor({ scene, site, draw }) {
    Object.assign(this, { scene, site, draw });
  }

  /** An answer that is on its way is not wanted any more. */
  drop() {
    this.#run += 1;
  }

  /** The answer of `/api/v1/PATH`; null where there is none, or another question came. */
  async ask(path, busy, body) {
    const run = (this.#run += 1);
    this.busy = busy;
    this.error = "";
    document.body.classList.add("busy");
    this.draw();
    const at = this.scene().moment;
    try {
      const answer = await postJson(`/api/v1/${path}`, { site: this.site(), ...(at === null ? {} : { at }), ...body });
      return run === this.#run ? answer : null;
    } catch (error) {
      if (run === this.#run) this.error = String(error.message ?? error);
      return null;
    } finally {
      if (run === this.#run) {
        this.busy = "";
        document.body.classList.remove("busy");
        this.draw();
      }
    }
  }
}
