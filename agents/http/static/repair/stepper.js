// The slider through the steps of a plan, with a button on either side of it. 0 is today; the last is the plan's end.

import { icon } from "../basics/icons.js";
import { el, fill } from "../basics/text.js";

export class Stepper {
  /** `go(number)` is called with the step that is wanted. */
  constructor(root, { go }) {
    Object.assign(this, { root, go, number: 0, titles: [] });
    this.slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Step of the plan", on: { input: () => go(Number(this.slider.value)) } });
    this.said = el("output", { "aria-label": "Step that is shown" });
    const button = (label, name, step) =>
      el("button", { type: "button", class: "icon", "aria-label": label, title: label, on: { click: () => go(this.number + step) } }, icon(name));
    this.before = button("Step before", "earlier", -1);
    this.next = button("Next step", "later", 1);
    fill(root, this.before, this.slider, this.next, this.said);
  }

  /** The plan has steps of these titles; none: there is no plan. */
  offer(titles) {
    this.titles = titles;
    this.slider.max = titles.length;
    this.root.hidden = !titles.length;
  }

  /** This step is shown. */
  show(number) {
    const most = this.titles.length;
    this.number = number;
    this.slider.value = number;
    this.before.disabled = number === 0;
    this.next.disabled = number === most;
    this.said.textContent = number ? `Step ${number} of ${most}: ${this.titles[number - 1]}` : `Today, before ${most} ${most === 1 ? "step" : "steps"}`;
    this.slider.setAttribute("aria-valuetext", this.said.textContent);
  }
}
