// Copying the address of what is shown. A browser has a clipboard for pages only on loopback and over TLS; elsewhere the
// address is shown, selected, to be copied by hand.

import { icon } from "../basics/icons.js";
import { el, fill } from "../basics/text.js";

const SAID = 2500; // milliseconds

export class LinkCopy {
  #timer = 0;

  constructor(button, said) {
    Object.assign(this, { button, said });
    fill(button, icon("link"));
    button.addEventListener("click", () => this.copy());
  }

  async copy() {
    const address = location.href;
    try {
      await navigator.clipboard.writeText(address);
      fill(this.said, "Link copied");
    } catch {
      const field = el("input", { readonly: true, value: address, "aria-label": "The link" });
      fill(this.said, "Copy the link: ", field);
      field.select();
      return this.#show(SAID * 8);
    }
    return this.#show(SAID);
  }

  #show(milliseconds) {
    this.said.hidden = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.said.hidden = true), milliseconds);
  }
}
