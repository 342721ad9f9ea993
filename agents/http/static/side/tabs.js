// The tabs beside the map, on a phone the views below it. Which one is shown is in the address.

export const TABS = ["findings", "activity", "whatif", "repair"];

export class Tabs {
  /** `go(view)` is called with the view that is wanted: map, or one of the tabs. `byId` finds an element. */
  constructor(byId, { go }) {
    Object.assign(this, { byId, go });
    for (const tab of TABS) {
      byId(`tab-${tab}`).addEventListener("click", () => go(tab));
      byId(`tab-${tab}`).addEventListener("keydown", (event) => this.#key(event, tab));
    }
    for (const button of document.querySelectorAll(".foot button")) button.addEventListener("click", () => go(button.dataset.view));
  }

  offer(tab, offered) {
    for (const each of document.querySelectorAll(`#tab-${tab}, .foot [data-view=${tab}]`)) each.hidden = !offered;
  }

  /** Show a view; `open` is the kind of thing whose details are open, "" for none. */
  show(view, open) {
    const main = this.byId("main");
    main.dataset.view = open ? "panel" : view;
    main.dataset.panel = open;
    for (const button of document.querySelectorAll(".foot button")) button.setAttribute("aria-pressed", String(!open && button.dataset.view === view));
    const current = TABS.includes(view) ? view : "findings";
    for (const tab of TABS) {
      const button = this.byId(`tab-${tab}`);
      button.setAttribute("aria-selected", String(tab === current));
      button.tabIndex = tab === current ? 0 : -1;
      this.byId(tab).hidden = Boolean(open) || tab !== current;
    }
    document.querySelector(".tabs").hidden = Boolean(open);
  }

  #key(event, tab) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const offered = TABS.filter((each) => !this.byId(`tab-${each}`).hidden);
    const other = offered[(offered.indexOf(tab) + step + offered.length) % offered.length];
    this.go(other);
    this.byId(`tab-${other}`).focus();
  }
}
