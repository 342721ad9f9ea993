// What happened lately, newest first; at a moment of the past, what had happened by then.

import { el, fill } from "../basics/text.js";
import { timeOf } from "../basics/times.js";

const HAPPENED = 300;

export class Activity {
  #entries = [];
  #until = null;

  constructor(root, { open }) {
    this.open = open;
    this.list = el("ol", { class: "list happened", "aria-label": "What happened, newest first" });
    this.note = el("p", { class: "note" });
    fill(root, this.note, this.list);
  }

  set(entries) {
    this.#entries = entries.slice(0, HAPPENED);
    this.#draw();
  }

  /** Show what had happened by a moment (RFC 3339); null: everything. */
  until(moment) {
    if (moment === this.#until) return;
    this.#until = moment;
    this.#draw();
  }

  add(entry) {
    if (this.#entries.some((each) => each.at === entry.at && each.text === entry.text)) return;
    const at = this.#entries.findIndex((each) => each.at <= entry.at);
    const place = at < 0 ? this.#entries.length : at;
    this.#entries.splice(place, 0, entry);
    const dropped = this.#entries.splice(HAPPENED).length;
    if (this.#until !== null) return; // the present goes on, and is not shown
    this.list.insertBefore(this.#item(entry, true), this.list.children[place] ?? null);
    for (let number = 0; number < dropped; number += 1) this.list.lastElementChild.remove();
    this.#says(this.#entries);
  }

  #draw() {
    const until = this.#until === null ? Infinity : Date.parse(this.#until);
    const shown = this.#entries.filter((entry) => Date.parse(entry.at) <= until);
    fill(this.list, shown.map((entry) => this.#item(entry)));
    this.#says(shown);
  }

  #says(shown) {
    const none = this.#until === null ? "Nothing has happened yet." : `Of the ${HAPPENED} newest entries that are remembered, none is that old.`;
    fill(this.note, shown.length ? null : none);
  }

  #item(entry, fresh = false) {
    const target = entry.pods?.length ? { kind: "pod", id: entry.pods[0] } : entry.node ? { kind: "node", id: entry.node } : null;
    const text = target
      ? el("button", { type: "button", class: "link plain", on: { click: () => this.open(target) } }, entry.text)
      : el("span", {}, entry.text);
    return el("li", { class: [entry.tone && `tone-${entry.tone}`, fresh && "new"].filter(Boolean).join(" ") || null }, timeOf(entry.at), text);
  }
}
