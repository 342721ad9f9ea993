// The findings of the scene that is shown, with their filter; below them those that have ended.

import { UNFILTERED } from "../address.js";
import { icon } from "../basics/icons.js";
import { adviceOn, byWeight, severities, severityChip, severityTag } from "../basics/severities.js";
import { count, el, fill, leftOut, namespaceOf, shortNames, written } from "../basics/text.js";
import { inFull, timeOf } from "../basics/times.js";

const SHOWN = 100; // items of a list before it asks whether more are wanted

/** Up, Down, Home and End go through the buttons of a list; one of them is in the tab order. */
export function roving(list) {
  list.addEventListener("keydown", (event) => {
    const all = [...list.querySelectorAll("button.item")];
    const at = all.indexOf(event.target.closest("button.item"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || !all[to]) return;
    event.preventDefault();
    all[at].tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  });
}

export class Findings {
  #limit = SHOWN;
  #filter = UNFILTERED;

  /**
   * `scene()` is what is shown. `choose(id)` is called with the finding that is wanted, "" for none; `open(item)` opens
   * a pod, node or host; `lifeOf(id)` is when a finding opened and ended, as far as that is known. What somebody filters
   * by is given to `filter(change)`, what they type to `typed(text)`.
   */
  constructor(root, { scene, choose, open, toMap, lifeOf, goTo, filter, typed }) {
    Object.assign(this, { scene, choose, open, toMap, lifeOf, goTo, filter });
    this.chosen = "";
    this.search = el("input", { type: "search", placeholder: "Filter findings", "aria-label": "Filter findings", on: { input: () => typed(this.search.value) } });
    this.rule = el("select", { "aria-label": "Rule", on: { change: () => filter({ rule: this.rule.value }) } });
    this.namespace = el("select", { "aria-label": "Namespace", on: { change: () => filter({ namespace: this.namespace.value }) } });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Severity" });
    this.list = el("ul", { class: "list", "aria-label": "Open findings" });
    this.note = el("p", { class: "note", role: "status" });
    this.missing = el("p", { class: "missing", role: "status" });
    this.past = el("ul", { class: "list past-list", "aria-label": "Findings that have ended" });
    this.pastTitle = el("h2", { class: "sub", hidden: true }, "Ended lately");
    fill(root, el("div", { class: "filter" }, this.search, el("div", { class: "selects" }, this.rule, this.namespace), this.chips), this.missing, this.note, this.list, this.pastTitle, this.past);
    roving(this.list);
  }

  get #severities() {
    return new Set(this.#filter.severity.split(",").filter(Boolean));
  }

  /** Show only this severity (or all again, where it is the only one shown). */
  only(severity) {
    this.filter({ severity: this.#filter.severity === severity ? "" : severity });
  }

  #matches(finding) {
    const { rule, namespace } = this.#filter;
    const [text, severities] = [this.#filter.filter.trim().toLowerCase(), this.#severities];
    if (severities.size && !severities.has(finding.severity)) return false;
    if (rule && finding.rule !== rule) return false;
    if (namespace && (!finding.pod || namespaceOf(finding.pod) !== namespace)) return false;
    if (!text) return true;
    const said = [finding.rule, finding.severity, finding.message, finding.pod, finding.node, finding.object, ...(finding.peers ?? [])];
    return said.some((each) => each?.toLowerCase().includes(text));
  }

  /** At this place: the finding that is chosen, and what the list is filtered by. */
  show(place) {
    const { finding: id } = place;
    const filter = Object.fromEntries(Object.keys(UNFILTERED).map((name) => [name, place[name]]));
    if (Object.keys(filter).some((name) => filter[name] !== this.#filter[name])) this.#limit = SHOWN;
    const other = id !== this.chosen;
    this.chosen = id;
    this.#filter = filter;
    if (this.search.value !== filter.filter) this.search.value = filter.filter;
    this.update();
    if (other && id) this.list.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  }

  update() {
    const scene = this.scene();
    const all = [...scene.findings.values()].sort(byWeight);
    const shown = all.filter((finding) => this.#matches(finding));
    this.#options(all);
    const listed = shown.slice(0, this.#limit);
    const far = shown.slice(this.#limit).find((finding) => finding.id === this.chosen); // a link may name any
    const items = [...listed, far].filter(Boolean);
    const entry = items.find((finding) => finding.id === this.chosen) ?? items[0]; // the one in the tab order
    fill(this.list, items.map((finding) => this.#item(finding, finding === entry)), this.#more(shown.length));
    const filtered = shown.length < all.length;
    fill(this.note, this.#says(all, shown, filtered));
    this.note.classList.toggle("good", scene.clear);
    this.note.classList.toggle("doubt", scene.loaded && scene.notJudged.length > 0);
    this.pastTitle.hidden = !scene.resolved.length;
    fill(this.past, scene.resolved.map((finding) => this.#resolved(finding)));
    fill(this.missing, scene.loaded && this.chosen && !scene.findings.has(this.chosen) ? this.#missed(scene) : null);
  }

  /** What became of a finding that is chosen, and is not open in this scene. */
  #missed(scene) {
    const { opened, resolved } = this.lifeOf(this.chosen);
    const when = scene.moment === null ? "is not open" : "was not open then";
    const look = opened && el("button", { type: "button", class: "link", on: { click: () => this.goTo(new Date(opened.at).toISOString()) } }, "Show it as it opened");
    const life = [opened && `It opened ${inFull(opened.at)}`, resolved && `${opened ? "and ended" : "It ended"} ${inFull(resolved.at)}`].filter(Boolean).join(" ");
    return [`The finding ${this.chosen} ${when}. `, life ? `${life}. ` : "What the topics remember does not name it. ", look];
  }

  #says(all, shown, filtered) {
    const scene = this.scene();
    if (!scene.loaded) return "";
    const then = scene.moment === null ? "" : " then";
    if (scene.clear) return [icon("check"), `No open finding${then}: every rule ${then ? "held" : "holds"}, down to the physical host.`];
    const number = filtered ? `${count(shown.length, "finding")} of ${written(all.length)}` : all.length ? "" : `No open finding${then}`;
    const unjudged = leftOut(scene);
    return unjudged ? [icon("question"), [number, unjudged].filter(Boolean).join(" · ")] : number;
  }

  #more(number) {
    if (number <= this.#limit) return null;
    const more = () => {
      this.#limit += SHOWN;
      this.update();
    };
    return el("li", {}, el("button", { type: "button", class: "more", on: { click: more } }, `Show more of ${written(number)}`));
  }

  #options(all) {
    const counts = new Map();
    for (const finding of all) counts.set(finding.severity, (counts.get(finding.severity) ?? 0) + 1);
    options(this.rule, "All rules", all.map((finding) => finding.rule), this.#filter.rule);
    options(this.namespace, "All namespaces", this.scene().namespaces(), this.#filter.namespace);
    const chosen = this.#severities;
    const toggle = (severity) => () => {
      if (!chosen.delete(severity)) chosen.add(severity);
      this.filter({ severity: [...chosen].join(",") });
      this.chips.querySelector(`[data-severity="${severity}"]`)?.focus();
    };
    fill(
      this.chips,
      severities().filter((severity) => counts.has(severity) || chosen.has(severity)).map((severity) =>
        severityChip(severity, counts.get(severity) ?? 0, { pressed: String(chosen.has(severity)), click: toggle(severity) })),
    );
  }

  #item(finding, entry) {
    const chosen = finding.id === this.chosen;
    const pods = [finding.pod, ...(finding.peers ?? [])].filter(Boolean);
    const focused = document.activeElement?.dataset?.finding === finding.id;
    const button = el(
      "button",
      { type: "button", class: "item", "aria-pressed": String(chosen), tabindex: entry ? 0 : -1, "data-finding": finding.id, on: { click: () => this.choose(chosen ? "" : finding.id) } },
      el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.source ? `${finding.rule} · ${finding.source}` : finding.rule), timeOf(finding.firstSeen)),
      el("span", { class: "subject" }, this.#subject(finding, pods)),
      el("span", { class: "message" }, finding.message),
    );
    if (focused) queueMicrotask(() => button.focus({ preventScroll: true }));
    return el("li", { class: chosen ? "chosen" : null }, button, chosen && this.#about(finding, pods));
  }

  #subject(finding, pods) {
    if (!pods.length) return finding.node ? `node ${finding.node}` : (finding.object ?? finding.rule);
    // Only where a host is shared against a rule is that rule the source, and the host the domain.
    const where = finding.source && finding.domain ? ` share ${finding.domain.value}` : "";
    return `${shortNames(pods.map((name) => this.scene().pods.get(name) ?? { name }))}${where}`;
  }

  #about(finding, pods) {
    const scene = this.scene();
    const { nodes, hosts } = scene.involved(finding);
    const link = (kind, id, text) => el("button", { type: "button", class: "link", on: { click: () => this.open({ kind, id }) } }, icon(kind), text);
    return el(
      "div",
      { class: "links" },
      el("p", { class: "note" }, adviceOn(finding)),
      el("button", { type: "button", class: "link phone", on: { click: () => this.toMap() } }, "Show on the map"),
      pods.slice(0, 30).map((name) => link("pod", name, name)),
      [...nodes].slice(0, 30).map((name) => link("node", name, name)),
      [...hosts].slice(0, 30).map((id) => link("host", id, scene.hosts.get(id)?.name ?? id)),
    );
  }

  #resolved(finding) {
    const pods = [finding.pod, ...(finding.peers ?? [])].filter(Boolean);
    const ended = finding.died
      ? el("span", { class: "severity gone" }, icon("close"), "ended: it is gone")
      : el("span", { class: "severity good" }, icon("check"), "resolved");
    return el(
      "li",
      {},
      el("span", { class: "item-head" }, ended, el("span", { class: "rule" }, finding.rule), timeOf(finding.resolvedAt)),
      el("button", { type: "button", class: "link subject", on: { click: () => this.choose(finding.id) } }, this.#subject(finding, pods).replace(" share ", " shared ")),
    );
  }
}

/** The choices of a filter; what is chosen is one of them though nothing has it now. */
function options(select, all, values, chosen) {
  const wanted = ["", ...new Set([...values, chosen].filter(Boolean).sort())];
  if (wanted.length !== select.options.length || wanted.some((value, at) => select.options[at].value !== value)) {
    fill(select, wanted.map((value) => el("option", { value }, value || all)));
  }
  select.value = chosen;
}
