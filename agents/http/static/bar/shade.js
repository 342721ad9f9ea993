// The theme: the system's, light or dark. theme.js has set what was chosen before, before anything was drawn.

import { icon } from "../basics/icons.js";
import { fill } from "../basics/text.js";

const THEMES = ["auto", "light", "dark"];
const ICONS = { auto: "auto", light: "sun", dark: "moon" };

export class Shade {
  /** `changed()` is called when colours are other ones. */
  constructor(button, changed) {
    Object.assign(this, { button, changed });
    button.addEventListener("click", () => this.next());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#show());
    this.#show();
  }

  next() {
    const chosen = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("underhost-theme", chosen);
    } catch {
      // Storage may be forbidden: then the choice lasts as long as the page.
    }
    this.#show();
  }

  #show() {
    const chosen = document.documentElement.dataset.theme;
    this.button.setAttribute("aria-label", `Theme: ${chosen === "auto" ? "system" : chosen}`);
    this.button.title = this.button.getAttribute("aria-label");
    fill(this.button, icon(ICONS[chosen]));
    this.changed();
  }
}
