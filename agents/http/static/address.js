// Where the page is: one place, which is also its address. Every view goes to another place instead of changing itself;
// what is shown follows. So Back, a reload and a link that somebody sent show the same.

/** No filter of the findings: text, severities (with commas between), rule, namespace. */
export const UNFILTERED = Object.freeze({ filter: "", severity: "", rule: "", namespace: "" });

/**
 * Nothing chosen, now, everything as the page itself chooses. `plan` is a plan as `whatif/plans.js` or `repair/plans.js`
 * writes it, `step` one of its steps; `search` is what is searched for, `pods` how pods are drawn, `colours` what has a
 * colour.
 */
export const NOWHERE = Object.freeze({
  site: "", finding: "", pod: "", node: "", host: "", at: "", plan: "", step: "", group: "", pods: "", colours: "", search: "", ...UNFILTERED, tab: "",
});
const KINDS = ["pod", "node", "host"];

/** What is open at a place: {kind, id}, or null. */
export function itemOf(place) {
  const kind = KINDS.find((each) => place[each]);
  return kind ? { kind, id: place[kind] } : null;
}

/** The change that opens an item; null closes what is open. */
export function opening(item) {
  const closed = { pod: "", node: "", host: "" };
  return item === null ? closed : { ...closed, [item.kind]: item.id };
}

export class Address {
  #place;
  #arrived;

  /** `arrived(place, before)` is called at every other place. */
  constructor(arrived) {
    this.#arrived = arrived;
    this.#place = read(location.search);
    addEventListener("popstate", () => this.#arrive(read(location.search)));
  }

  get place() {
    return this.#place;
  }

  /** What somebody types, letter by letter: one step for Back, from the first letter to the last. */
  type(name, text) {
    this.go({ [name]: text }, { instead: Boolean(text && this.#place[name]) });
  }

  /** Go to a place that differs by this. `instead`: Back leads to before the place that is left. */
  go(change, { instead = false } = {}) {
    const place = Object.freeze({ ...this.#place, ...change });
    if (same(place, this.#place)) return;
    history[instead ? "replaceState" : "pushState"](null, "", written(place));
    this.#arrive(place);
  }

  #arrive(place) {
    const before = this.#place;
    this.#place = place;
    this.#arrived(place, before);
  }
}

const same = (one, other) => Object.keys(NOWHERE).every((name) => one[name] === other[name]);

function read(query) {
  const given = new URLSearchParams(query);
  return Object.freeze(Object.fromEntries(Object.keys(NOWHERE).map((name) => [name, given.get(name) ?? ""])));
}

function written(place) {
  const named = Object.entries(place).filter(([, value]) => value !== "");
  const query = new URLSearchParams(named).toString();
  return query ? `?${query}` : location.pathname;
}
