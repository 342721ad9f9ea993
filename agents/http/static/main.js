// The page: one store that follows one site, the map, the lists and the details that show it, and the keys.

import { Live } from "./api.js";
import { onStanding, signIn, signOut } from "./door.js";
import { icon } from "./icons.js";
import { Activity, Findings } from "./lists.js";
import { MapView } from "./map.js";
import { Palette, slotClass, workloadKey } from "./palette.js";
import { Panel } from "./panel.js";
import { Past } from "./past.js";
import { podLabel, stateOf } from "./pods.js";
import { classesOf, isGrave, setSeverities, severities, severityChip, severityIcon } from "./severities.js";
import { Store } from "./store.js";
import { clean, count, el, fill, leftOut, tick, workloadName } from "./text.js";
import { WhatIf, account, figures } from "./whatif.js";

const $ = (id) => document.getElementById(id);
const LEGEND = 24; // workloads that have a colour and pattern of their own
const MANY_HOSTS = 24; // hosts that are too many for a screen
const store = new Store();
const palette = new Palette();
let site = "";
let features = new Set();
let grouped = false;

const map = new MapView($("map"), { palette, pick: open, point: pointAt });
const findings = new Findings($("findings"), store, { pick: lightFinding, open, toMap });
const activity = new Activity($("activity"), { open });
const whatif = new WhatIf($("whatif"), store, { shown: showOutcome, site: () => site, open });
const panel = new Panel($("panel"), store, { palette, open, opened, actions: (item) => whatif.actions(item), site: () => site });
const past = new Past($("past"), { shown: showPast, site: () => site });

// ------------------------------------------------------------------------------------------------ following the worker
const live = new Live((kind, data) => {
  if (kind === "severities") setSeverities(data);
  else if (kind === "sites") showSites(data);
  else if (kind === "state") showState(data);
  else if (kind === "load") load(data);
  else if (kind === "change") store.apply(data);
  else if (kind === "activities") activity.set(data);
  else if (kind === "activity") activity.add(data);
});

let stood = null;
onStanding((now) => {
  const button = $("sign");
  button.hidden = !now.needed;
  button.textContent = now.signedIn ? "Sign out" : "Sign in";
  button.onclick = now.signedIn ? signOut : signIn;
  const entered = now.signedIn && stood !== null && !stood.signedIn;
  stood = now;
  if (entered && !store.loaded) live.follow(site);
  else if (entered && features.has("history")) past.look();
});

store.addEventListener("change", ({ detail }) => {
  if (detail.structural) showGroups();
  if (map.scene === store) map.update(detail.nodes);
  findings.update();
  panel.update(detail.nodes);
  showSummary();
  showLegend();
  showOverview();
  if (search.value.trim()) find();
});

function load(data) {
  site = data.site;
  $("site").value = site;
  performance.mark("underhost-data");
  map.scene ??= store;
  store.load(data.map, data.findings, data.notJudged);
  if (features.has("history")) past.look();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    performance.mark("underhost-drawn"); // the frame before this one holds the map
    document.body.dataset.drawn = "true";
  }));
}

function showSites(document_) {
  features = new Set(document_.features);
  whatif.offered = features.has("whatif");
  for (const each of document.querySelectorAll("#tab-whatif, .foot [data-view=whatif]")) each.hidden = !whatif.offered;
  const select = $("site");
  const names = document_.sites.map((each) => each.site);
  if (names.join("\n") !== [...select.options].map((option) => option.value).join("\n")) {
    fill(select, names.map((name) => el("option", { value: name }, name)));
    select.value = site || names[0];
  }
  select.disabled = names.length < 2;
}

function showState({ state, text, reason }) {
  $("live").dataset.state = state;
  $("live").lastElementChild.textContent = clean(text);
  $("live").title = clean(reason ?? "The page follows every change.");
  document.body.dataset.state = state;
  if (state !== "paused") store.silent(state === "live" ? "" : reason, new Date().toLocaleTimeString());
  if (state === "waiting" && !store.loaded) fill($("map"), el("p", { class: "note" }, `Waiting: ${reason}`));
}

$("site").addEventListener("change", () => {
  panel.show(null);
  findings.choose(null);
  live.follow($("site").value);
});

// ------------------------------------------------------------------------------------------------- figures and legend
function showSummary() {
  const waiting = store.waiting().length;
  const counts = new Map();
  for (const finding of store.findings.values()) counts.set(finding.severity, (counts.get(finding.severity) ?? 0) + 1);
  const grave = [...counts.keys()].some(isGrave);
  const figures = [[store.hosts.size, "host"], [store.nodes.size, "node"], [store.pods.size, "pod"]];
  fill(
    $("summary"),
    figures.map(([number, what]) => el("span", { class: "figure" }, el("b", {}, number.toLocaleString("en")), number === 1 ? what : `${what}s`)),
    waiting > 0 && el("span", { class: "figure waiting" }, el("b", {}, waiting.toLocaleString("en")), "waiting for a node"),
    el("span", { class: "gap" }),
    counts.size
      ? severities().filter((severity) => counts.has(severity)).map((severity) =>
          severityChip(severity, counts.get(severity), { click: () => { view("findings"); findings.only(severity); } }))
      : el("span", { class: `chip ${store.clear ? "good" : "doubt"}`, title: leftOut(store) || null }, icon(store.clear ? "check" : "question"), store.clear ? "no open finding" : "not all is judged"),
  );
  for (const each of document.querySelectorAll("#tab-findings b, .foot [data-view=findings] b")) {
    each.textContent = store.findings.size || "";
    each.className = grave ? "grave" : "";
  }
  document.title = clean(`${grave ? "● " : ""}${site} · Underhost`);
}

function showLegend() {
  const workloads = new Map();
  for (const pod of store.pods.values()) {
    const key = pod.pinned ? "\npinned" : workloadKey(pod);
    const held = workloads.get(key);
    if (held) held.number += 1;
    else workloads.set(key, { pod, key, number: 1, name: pod.pinned ? "belongs to its node" : workloadName(pod.workload) || "no workload" });
  }
  const listed = [...workloads.values()].sort((a, b) => palette.of(a.pod).order - palette.of(b.pod).order || (a.key < b.key ? -1 : 1));
  const signature = listed.map((each) => `${each.key} ${each.number}`).join("\n");
  const legend = $("legend");
  if (legend.signature === signature) return;
  legend.signature = signature;
  if (listed.length > LEGEND) {
    fill(legend, el("span", { class: "key" }, `${count(listed.length, "workload")} share the colours: point at a pod, or search.`));
    return;
  }
  fill(
    legend,
    listed.map((each) => {
      const glow = () => lightPods((pod) => (pod.pinned ? "\npinned" : workloadKey(pod)) === each.key);
      const on = { pointerenter: glow, pointerleave: relight, focus: glow, blur: relight, click: () => { search.value = each.pod.pinned ? "" : each.name; find(); } };
      return el("button", { type: "button", class: "key", title: `${each.key.replace("|", " ").trim()}: ${count(each.number, "pod")}`, on }, el("i", { class: `swatch ${slotClass(palette.of(each.pod))}` }), each.name, el("small", {}, each.number));
    }),
  );
}

/** Every host as a small square, for sites that do not fit a screen: where it is wrong, and the way there. */
function showOverview() {
  const overview = $("overview");
  overview.hidden = store.hosts.size <= MANY_HOSTS;
  if (overview.hidden) return;
  const hosts = map.order();
  while (overview.children.length > hosts.length) overview.lastElementChild.remove();
  while (overview.children.length < hosts.length) overview.append(document.createElement("i"));
  hosts.forEach((host, at) => {
    const cell = overview.children[at];
    if (cell.host !== host.id) cell.title = clean(host.name);
    cell.host = host.id;
    const name = classesOf(store.severity("host", host.id));
    if (cell.className !== name) cell.className = name;
  });
}

$("overview").addEventListener("click", (event) => {
  if (event.target.host === undefined) return;
  if (standing) escape();
  map.reveal("host", event.target.host, true);
});

function showGroups() {
  const keys = store.groupings();
  const select = $("group");
  const wanted = ["", ...keys];
  if (wanted.join("\n") !== [...select.options].map((option) => option.value).join("\n")) {
    const before = select.value;
    const title = (key) => (key === "" ? "no groups" : key === "cluster" ? "vSphere cluster" : key.slice(key.lastIndexOf("/") + 1));
    fill(select, wanted.map((key) => el("option", { value: key }, title(key))));
    select.value = wanted.includes(before) ? before : "";
  }
  if (!grouped && store.hosts.size > 12) {
    const zone = keys.find((key) => key.endsWith("/zone"));
    select.value = keys.includes("cluster") ? "cluster" : zone ?? "";
  }
  grouped = true;
  map.group = select.value;
}

$("group").addEventListener("change", () => {
  map.group = $("group").value;
  map.update(null);
  showOverview();
  if (!$("after").hidden) {
    after.group = map.group;
    after.update(null);
  }
});
$("detail").addEventListener("change", () => {
  map.detail = $("detail").value;
  map.update(null);
});

// ----------------------------------------------------------------------------------------------------- light and search
const search = $("search");
let standing = null; // what stays lit: the finding that is chosen, or what is searched for

function relight() {
  const narrow = standing !== null && store.hosts.size > MANY_HOSTS;
  map.light(standing, narrow);
  $("narrow").hidden = !narrow || !standing.hosts.size;
  if (narrow) fill($("narrow"), `Only ${count(standing.hosts.size, "host")} of ${store.hosts.size}. `, el("button", { type: "button", class: "link", on: { click: escape } }, "Show all"));
}

function litBy(matches) {
  const lit = { pods: new Set(), nodes: new Set(), hosts: new Set() };
  for (const pod of store.pods.values()) {
    if (!matches(pod)) continue;
    lit.pods.add(pod.name);
    if (pod.node) lit.nodes.add(pod.node);
    const host = store.nodes.get(pod.node)?.host;
    if (host) lit.hosts.add(host);
  }
  return lit;
}

function lightPods(matches) {
  map.light(litBy(matches));
}

function lightFinding(finding) {
  standing = finding ? store.involved(finding) : null;
  relight();
  if (!finding) return;
  const [host] = standing.hosts;
  const [node] = standing.nodes;
  if (innerWidth > 800) map.reveal(host ? "host" : "node", host ?? node);
}

function toMap() {
  view("map");
  const [host] = standing?.hosts ?? [];
  if (host) map.reveal("host", host);
}

function find() {
  const text = search.value.trim().toLowerCase();
  if (!text) {
    standing = null;
    $("search-count").textContent = "";
    return relight();
  }
  const has = (...names) => names.some((name) => name?.toLowerCase().includes(text));
  const lit = litBy((pod) => has(pod.name, pod.workload));
  const pods = lit.pods.size;
  let [nodes, hosts] = [0, 0];
  for (const node of store.nodes.values()) if (has(node.name, node.vm)) { nodes += 1; lit.nodes.add(node.name); for (const pod of store.podsOn(node.name)) lit.pods.add(pod.name); if (node.host) lit.hosts.add(node.host); }
  for (const host of store.hosts.values()) if (has(host.name)) { hosts += 1; lit.hosts.add(host.id); for (const node of store.nodesOn(host.id)) { lit.nodes.add(node.name); for (const pod of store.podsOn(node.name)) lit.pods.add(pod.name); } }
  standing = lit;
  const found = [[hosts, "host"], [nodes, "node"], [pods, "pod"]].filter(([number]) => number).map(([number, what]) => count(number, what));
  $("search-count").textContent = found.join(", ") || "nothing";
  relight();
}

search.addEventListener("input", find);
$("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!standing) return;
  const text = search.value.trim().toLowerCase();
  const first = (names) => [...names].sort().find((name) => name.toLowerCase().includes(text));
  const host = [...store.hosts.values()].find((each) => each.name.toLowerCase().includes(text));
  const node = first(standing.nodes);
  const pod = first(standing.pods) ?? [...standing.pods][0];
  if (host) map.reveal("host", host.id, true);
  else if (node) map.reveal("node", node, true);
  else if (pod) map.reveal("pod", pod, true);
});

// ------------------------------------------------------------------------------------------------------------- details
function open(item) {
  panel.show(item);
  if (item) view("panel");
}

function opened(item) {
  $("main").dataset.panel = item?.kind ?? "";
  for (const tab of TABS) $(tab).hidden = item !== null || tabs.current !== tab;
  document.querySelector(".tabs").hidden = item !== null;
  map.current?.classList.remove("opened");
  for (const each of document.querySelectorAll(".opened")) each.classList.remove("opened");
  if (item) map.elementOf(item.kind, item.id)?.classList.add("opened");
  else if ($("main").dataset.view === "panel") view("map");
}

const TABS = ["findings", "activity", "whatif"];
const tabs = { current: "findings" };

function view(name) {
  const main = $("main");
  main.dataset.view = name;
  for (const button of document.querySelectorAll(".foot button")) button.setAttribute("aria-pressed", String(button.dataset.view === name));
  if (!TABS.includes(name)) return;
  tabs.current = name;
  if (name === "whatif") whatif.draw();
  for (const tab of TABS) {
    $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
    $(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
  }
  if (panel.item) panel.show(null);
  opened(null);
}

for (const tab of TABS) {
  $(`tab-${tab}`).addEventListener("click", () => view(tab));
  $(`tab-${tab}`).addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const offered = TABS.filter((each) => !$(`tab-${each}`).hidden);
    const other = offered[(offered.indexOf(tab) + step + offered.length) % offered.length];
    view(other);
    $(`tab-${other}`).focus();
  });
}
for (const button of document.querySelectorAll(".foot button")) {
  button.addEventListener("click", () => {
    if (panel.item) panel.show(null);
    view(button.dataset.view);
  });
}

// ------------------------------------------------------------------------------------- other times: what if, and the past
let after = null; // the map of the outcome, made when it is first wanted

function showOutcome(scene, title, answer, error) {
  const simulating = scene !== null;
  $("banner").hidden = !simulating && !error;
  $("after").hidden = !simulating;
  $("main").classList.toggle("simulating", simulating);
  $("account").hidden = !simulating;
  if (error) fill($("banner"), el("b", {}, "What if"), el("span", { class: "hurts" }, `${title}: ${error}`), closing());
  if (!simulating) {
    fill($("account"));
    return;
  }
  fill($("banner"), el("b", {}, "Simulation"), el("span", { class: "if" }, `If ${title}`), el("span", { class: "figures" }, figures(answer)), el("span", { class: "soft" }, "Nothing is touched."), closing());
  fill($("account"), el("h2", { tabindex: -1 }, `If ${title}`), account(answer, open));
  panel.show(null);
  if (!after) after = new MapView($("after-map"), { palette, pick: open, point: pointAfter, animate: false });
  after.group = map.group;
  after.detail = map.detail === "auto" && map.level === "names" && innerWidth > 800 ? "names" : map.detail;
  after.show(scene);
  after.mark(scene.marks);
  view("map");
}

function closing() {
  return el("button", { type: "button", on: { click: () => showOutcome(null) } }, "Close");
}

function pointAfter(item, element, event) {
  pointAt(item, element, event, after.scene);
}

function showPast(scene, moment) {
  const banner = $("banner");
  banner.hidden = scene === null;
  banner.classList.toggle("is-past", scene !== null);
  $("today-title").hidden = scene === null;
  map.show(scene ?? store);
  if (scene !== null) {
    const number = scene.findings.size;
    fill(banner, el("b", {}, "The past"), el("span", {}, moment.toLocaleString()), el("span", {}, [number ? `${count(number, "finding")} open then` : "no finding open then", leftOut(scene)].filter(Boolean).join(" · ")), el("button", { type: "button", on: { click: () => past.back() } }, "Back to now"));
  }
}

// -------------------------------------------------------------------------------------------------------- the small tip
function pointAt(item, element, event, scene = map.scene) {
  const tip = $("tip");
  if (!item || item.kind !== "pod") {
    tip.hidden = true;
    return;
  }
  const pod = scene.pods.get(item.id);
  if (!pod) return;
  const wrong = scene.about("pod", pod.name);
  fill(
    tip,
    el("b", {}, pod.name),
    el("span", {}, `${pod.workload || "no workload"} · ${stateOf(pod)}`),
    el("span", {}, [pod.node, scene.hostOf(pod)?.name].filter(Boolean).join(" on ") || "waits for a node"),
    wrong.map((finding) => el("span", { class: classesOf(finding.severity) }, severityIcon(finding.severity), finding.reason)),
  );
  tip.setAttribute("aria-label", podLabel(pod, wrong));
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const x = event ? event.clientX + 14 : box.right + 8;
  const y = event ? event.clientY + 16 : box.top;
  tip.style.left = `${Math.max(8, Math.min(x, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + tip.offsetHeight > innerHeight - 8 ? Math.max(8, y - tip.offsetHeight - 32) : y}px`;
}

// -------------------------------------------------------------------------------------------------------- theme and keys
const THEMES = ["auto", "light", "dark"];
const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };

function showTheme() {
  const chosen = document.documentElement.dataset.theme;
  $("theme").setAttribute("aria-label", `Theme: ${chosen === "auto" ? "system" : chosen}`);
  $("theme").title = $("theme").getAttribute("aria-label");
  fill($("theme"), icon(THEME_ICONS[chosen]));
  if (map.scene) map.themeChanged();
  after?.themeChanged();
}

function nextTheme() {
  const chosen = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem("underhost-theme", chosen);
  } catch {
    // Storage may be forbidden: then the choice lasts as long as the page.
  }
  showTheme();
}

$("theme").addEventListener("click", nextTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
$("help").addEventListener("click", () => $("help-dialog").showModal());
$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  map.focus();
});

function escape() {
  $("tip").hidden = true;
  const typed = document.activeElement === search || search.value;
  if (panel.item) {
    const { kind, id } = panel.item;
    open(null);
    map.reveal(kind, id, true) || map.focus();
  } else if (typed) {
    search.value = "";
    find();
    search.blur();
  } else if (findings.chosen) findings.choose(null);
  else if (!$("banner").hidden && !past.active) showOutcome(null);
  else if (past.active) past.back();
}

const KEYS = {
  "/": () => { search.focus(); search.select(); },
  "?": () => $("help-dialog").showModal(),
  f: () => { view("findings"); (document.querySelector("#findings .item[tabindex='0']") ?? findings.search).focus(); },
  m: () => { view("map"); map.focus(); },
  t: nextTheme,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return escape();
  if (event.target.matches("input, select, textarea")) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

showTheme();
setInterval(() => tick(document), 1000);
live.follow("");
