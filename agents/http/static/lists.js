// The two lists beside the map: findings with their filter, and what happened lately.

import { icon } from "./icons.js";
import { byWeight } from "./map.js";
import { severities, severityChip, severityTag } from "./severities.js";
import { count, el, fill, leftOut, namespaceOf, shortNames, timeOf } from "./text.js";

const SHOWN = 100; // items of a list before it asks whether more are wanted
const HAPPENED = 300;

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
  #filter = { text: "", severities: new Set(), rule: "", namespace: "" };

  /** `pick(finding)` is called with the finding that is chosen, null where none is any more; `open(item)` opens one. */
  constructor(root, store, { pick, open, toMap }) {
    this.store = store;
    this.toMap = toMap;
    this.pick = pick;
    this.open = open;
    this.chosen = null;
    this.search = el("input", { type: "search", placeholder: "Filter findings", "aria-label": "Filter findings", on: { input: () => this.#filtered() } });
    this.rule = el("select", { "aria-label": "Rule", on: { change: () => this.#filtered() } });
    this.namespace = el("select", { "aria-label": "Namespace", on: { change: () => this.#filtered() } });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Severity" });
    this.list = el("ul", { class: "list", "aria-label": "Open findings" });
    this.note = el("p", { class: "note", role: "status" });
    this.past = el("ul", { class: "list past-list", "aria-label": "Resolved findings" });
    this.pastTitle = el("h3", { hidden: true }, "Resolved");
    fill(root, el("div", { class: "filter" }, this.search, el("div", { class: "selects" }, this.rule, this.namespace), this.chips), this.note, this.list, this.pastTitle, this.past);
    roving(this.list);
  }

  #filtered() {
    Object.assign(this.#filter, { text: this.search.value.trim().toLowerCase(), rule: this.rule.value, namespace: this.namespace.value });
    this.#limit = SHOWN;
    this.update();
  }

  /** Show only this severity (or all again, where it is the only one shown). */
  only(severity) {
    const { severities } = this.#filter;
    const alone = severities.size === 1 && severities.has(severity);
    severities.clear();
    if (!alone) severities.add(severity);
    this.update();
  }

  #matches(finding) {
    const { text, severities, rule, namespace } = this.#filter;
    if (severities.size && !severities.has(finding.severity)) return false;
    if (rule && finding.rule !== rule) return false;
    if (namespace && (!finding.pod || namespaceOf(finding.pod) !== namespace)) return false;
    if (!text) return true;
    const said = [finding.rule, finding.severity, finding.message, finding.pod, finding.node, finding.object, ...(finding.peers ?? [])];
    return said.some((each) => each?.toLowerCase().includes(text));
  }

  update() {
    const all = [...this.store.findings.values()].sort(byWeight);
    const shown = all.filter((finding) => this.#matches(finding));
    this.#options(all);
    fill(this.list, shown.slice(0, this.#limit).map((finding, at) => this.#item(finding, at === 0)), this.#more(shown.length));
    const filtered = shown.length < all.length;
    fill(this.note, this.#says(all, shown, filtered));
    this.note.classList.toggle("good", this.store.clear);
    this.note.classList.toggle("doubt", this.store.loaded && this.store.notJudged.length > 0);
    this.pastTitle.hidden = !this.store.resolved.length;
    fill(this.past, this.store.resolved.map((finding) => this.#resolved(finding)));
    if (this.chosen && !this.store.findings.has(this.chosen)) this.choose(null);
  }

  #says(all, shown, filtered) {
    if (!this.store.loaded) return "";
    if (this.store.clear) return [icon("check"), "No open finding: every rule holds, down to the physical host."];
    const number = filtered ? `${count(shown.length, "finding")} of ${all.length}` : all.length ? "" : "No open finding";
    const unjudged = leftOut(this.store);
    return unjudged ? [icon("question"), [number, unjudged].filter(Boolean).join(" · ")] : number;
  }

  #more(number) {
    if (number <= this.#limit) return null;
    const more = () => {
      this.#limit += SHOWN;
      this.update();
    };
    return el("li", {}, el("button", { type: "button", class: "more", on: { click: more } }, `Show more of ${number.toLocaleString("en")}`));
  }

  #options(all) {
    const counts = new Map();
    for (const finding of all) counts.set(finding.severity, (counts.get(finding.severity) ?? 0) + 1);
    options(this.rule, "All rules", [...new Set(all.map((finding) => finding.rule))].sort());
    options(this.namespace, "All namespaces", this.store.namespaces());
    const chosen = this.#filter.severities;
    const toggle = (severity) => () => {
      if (!chosen.delete(severity)) chosen.add(severity);
      this.update();
      this.chips.querySelector(`[data-severity="${severity}"]`)?.focus();
    };
    fill(
      this.chips,
      severities().filter((severity) => counts.has(severity) || chosen.has(severity)).map((severity) =>
        severityChip(severity, counts.get(severity) ?? 0, { pressed: String(chosen.has(severity)), click: toggle(severity) })),
    );
  }

  #item(finding, first) {
    const chosen = finding.id === this.chosen;
    const pods = [finding.pod, ...(finding.peers ?? [])].filter(Boolean);
    const focused = document.activeElement?.dataset?.finding === finding.id;
    const button = el(
      "button",
      { type: "button", class: "item", "aria-pressed": String(chosen), tabindex: chosen || (first && !this.chosen) ? 0 : -1, "data-finding": finding.id, on: { click: () => this.choose(chosen ? null : finding.id) } },
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
    return `${shortNames(pods.map((name) => this.store.pods.get(name) ?? { name }))}${where}`;
  }

  #about(finding, pods) {
    const { nodes, hosts } = this.store.involved(finding);
    const link = (kind, id, text) => el("button", { type: "button", class: "link", on: { click: () => this.open({ kind, id }) } }, icon(kind), text);
    return el(
      "div",
      { class: "links" },
      el("button", { type: "button", class: "link phone", on: { click: () => this.toMap() } }, "Show on the map"),
      pods.slice(0, 30).map((name) => link("pod", name, name)),
      [...nodes].slice(0, 30).map((name) => link("node", name, name)),
      [...hosts].slice(0, 30).map((id) => link("host", id, this.store.hosts.get(id)?.name ?? id)),
    );
  }

  #resolved(finding) {
    const pods = [finding.pod, ...(finding.peers ?? [])].filter(Boolean);
    return el(
      "li",
      {},
      el("span", { class: "item-head" }, el("span", { class: "severity good" }, icon("check"), "resolved"), el("span", { class: "rule" }, finding.rule), timeOf(finding.resolvedAt)),
      el("span", { class: "subject" }, this.#subject(finding, pods).replace(" share ", " shared ")),
    );
  }

  /** Light a finding up, or, with null, put the light out. */
  choose(id) {
    this.chosen = id;
    this.pick(id === null ? null : this.store.findings.get(id));
    this.update();
  }
}

function options(select, all, values) {
  const before = select.value;
  const wanted = ["", ...values];
  if (wanted.length === select.options.length && wanted.every((value, at) => select.options[at].value === value)) return;
  fill(select, wanted.map((value) => el("option", { value }, value || all)));
  select.value = wanted.includes(before) ? before : "";
}

export class Activity {
  #entries = [];

  constructor(root, { open }) {
    this.open = open;
    this.list = el("ol", { class: "list happened", "aria-label": "What happened, newest first" });
    this.note = el("p", { class: "note" });
    fill(root, this.note, this.list);
  }

  set(entries) {
    this.#entries = entries.slice(0, HAPPENED);
    fill(this.list, this.#entries.map((entry) => this.#item(entry)));
    this.#says();
  }

  add(entry) {
    if (this.#entries.some((each) => each.at === entry.at && each.text === entry.text)) return;
    const at = this.#entries.findIndex((each) => each.at <= entry.at);
    const place = at < 0 ? this.#entries.length : at;
    this.#entries.splice(place, 0, entry);
    this.list.insertBefore(this.#item(entry, true), this.list.children[place] ?? null);
    while (this.#entries.length > HAPPENED) {
      this.#entries.pop();
      this.list.lastElementChild.remove();
    }
    this.#says();
  }

  #says() {
    fill(this.note, this.#entries.length ? null : "Nothing has happened yet.");
  }

  #item(entry, fresh = false) {
    const target = entry.pods?.length ? { kind: "pod", id: entry.pods[0] } : entry.node ? { kind: "node", id: entry.node } : null;
    const text = target
      ? el("button", { type: "button", class: "link plain", on: { click: () => this.open(target) } }, entry.text)
      : el("span", {}, entry.text);
    return el("li", { class: [entry.tone && `tone-${entry.tone}`, fresh && "new"].filter(Boolean).join(" ") || null }, timeOf(entry.at), text);
  }
}
