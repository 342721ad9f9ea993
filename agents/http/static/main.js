// The page: where it is (address.js) decides what is shown; the scene, of now (what the worker tells) or of a moment of
// the past, is what it is shown of. Everything that somebody does goes to another place; `arrive` draws what differs.

import { Address, UNFILTERED, itemOf, opening } from "./address.js";
import { Connection } from "./bar/connection.js";
import { listenToKeys } from "./bar/keys.js";
import { LinkCopy } from "./bar/link.js";
import { Search, litBy } from "./bar/search.js";
import { Shade } from "./bar/shade.js";
import { summarise } from "./bar/summary.js";
import { icon } from "./basics/icons.js";
import { setSeverities } from "./basics/severities.js";
import { clean, count, el, fill, written } from "./basics/text.js";
import { tick } from "./basics/times.js";
import { Groups } from "./map/groups.js";
import { Legend } from "./map/legend.js";
import { MANY_HOSTS, Overview } from "./map/overview.js";
import { Palette } from "./map/palette.js";
import { Tip } from "./map/tip.js";
import { MapView } from "./map/view.js";
import { Panel } from "./panel/frame.js";
import { Repair } from "./repair/tab.js";
import { Activity } from "./side/activity.js";
import { Findings } from "./side/findings.js";
import { Tabs } from "./side/tabs.js";
import { siteOf } from "./site/elsewhere.js";
import { Pieces } from "./site/pieces.js";
import { Store } from "./site/store.js";
import { Travel } from "./time/travel.js";
import { Beside } from "./whatif/beside.js";
import { WhatIf } from "./whatif/tab.js";
import { Live } from "./worker/api.js";
import { onStanding, signIn, signOut } from "./worker/door.js";

const $ = (id) => document.getElementById(id);
const NARROW = 800; // pixels up to which the map and the lists are views of their own
const store = new Store();
const palette = new Palette();
let site = ""; // whose data the store holds
let scene = store; // what is shown: the store, or a moment of the past

const address = new Address(arrive);
const go = (change, how) => address.go(change, how);
const shown = { scene: () => scene, site: () => site };
const open = (item) => {
  keepFocus();
  go(opening(item));
};
const choose = (finding) => go({ ...opening(null), finding, tab: address.place.tab === "map" ? "" : address.place.tab });

const pieces = new Pieces(store, { site: shown.site });
const need = (nodes) => pieces.want(nodes);

const tip = new Tip($("tip"));
const map = new MapView($("map"), { palette, pick: open, need, point: (...pointed) => tip.show(map.scene, ...pointed) });
const beside = new Beside($, { palette, map, open, tip, close: () => go({ plan: "", step: "" }) });
let asked = false; // somebody has just asked for a plan: the focus goes to its account
const plan = (text) => {
  asked = true;
  go({ ...opening(null), plan: text, step: "" });
};
const whatif = new WhatIf($("whatif"), { ...shown, plan, open, shown: showOutcome });
const step = (number) => go({ step: String(number) }, { instead: address.place.step !== "" });
const repair = new Repair($("repair"), $("steps"), { ...shown, plan, step, shown: showOutcome, stepped: (...stepped) => beside.step(...stepped) });
const panel = new Panel($("panel"), { ...shown, palette, open, choose, need, actions: (item) => whatif.actions(item) });
const travel = new Travel($("past"), { ...shown, present: store, go: (at) => go({ at: at ?? "" }, { instead: Boolean(at && address.place.at) }), arrived: showScene });
const findings = new Findings($("findings"), { scene: shown.scene, choose, open, toMap: () => go({ tab: "map" }), lifeOf: (id) => travel.marks.lifeOf(id), goTo: (at) => go({ at }), filter: go, typed: (text) => address.type("filter", text) });
const activity = new Activity($("activity"), { open });
const tabs = new Tabs($, { go: (tab) => go({ ...opening(null), tab: tab === "findings" && innerWidth > NARROW ? "" : tab }) });
const groups = new Groups($("group"), { choose: (group) => go({ group }) });
const overview = new Overview($("overview"), { pick: (id) => { escape.light(); map.reveal("host", id, true); } });
const legend = new Legend($("legend"), { palette, light: (matches) => (matches ? map.light(litBy(scene, matches)) : relight()), search: (text) => go({ search: text }) });
const search = new Search({ form: $("search-form"), input: $("search"), output: $("search-count"), scene: shown.scene, typed: (text) => { search.find(); address.type("search", text); }, reveal: (kind, id) => map.reveal(kind, id, true) });
const connection = new Connection($("live"), $("stale"));
const link = new LinkCopy($("link"), $("said"));
const shade = new Shade($("theme"), () => {
  if (map.scene) map.themeChanged();
  beside.themeChanged();
});

// ------------------------------------------------------------------------------------------------ following the worker
const live = new Live((kind, data) => {
  if (["load", "change", "activity"].includes(kind)) connection.heard(); // the others are not of the site: nothing new to see
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
  else if (entered) travel.look();
});

function showSites({ features, sites }) {
  whatif.offered = features.includes("whatif");
  travel.offered = features.includes("history");
  tabs.offer("whatif", whatif.offered);
  repair.offered = features.includes("repair");
  tabs.offer("repair", repair.offered);
  const names = sites.map((each) => each.site);
  const select = $("site");
  if (names.join("\n") !== [...select.options].map((option) => option.value).join("\n")) {
    fill(select, names.map((name) => el("option", { value: name }, name)));
    select.value = site || address.place.site || names[0];
  }
  select.disabled = names.length < 2;
}

function showState({ state, text, reason }) {
  connection.show({ state, text, reason }, store.loaded);
  entitle({ silent: state === "live" ? "" : text });
  if (state !== "paused") store.silent(state === "live" ? "" : reason, connection.since);
  if (state === "waiting" && !store.loaded) fill($("map"), el("p", { class: "note" }, `Waiting: ${reason}`));
}

function load(data) {
  site = data.site;
  $("site").value = site;
  performance.mark("underhost-data");
  groups.forget();
  pieces.forget();
  whatif.forget();
  repair.forget();
  scene = store;
  map.scene = store;
  store.load(data.map, data.findings, data.notJudged);
  travel.begin(site);
  arrive(address.place, null);
  lookElsewhere(address.place);
  drawn();
}

/** Say that the map is drawn, with the pods that are in view: then the frame before this one holds it. */
async function drawn() {
  const twoFrames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await twoFrames();
  if (!store.whole) {
    await pieces.settled();
    await twoFrames();
  }
  performance.mark("underhost-drawn");
  document.body.dataset.drawn = "true";
}

/** A link has led to a finding that is not open in this site: it may be in another one. */
async function lookElsewhere({ finding, site: named }) {
  if (!finding || named || store.findings.has(finding)) return;
  const others = [...$("site").options].map((option) => option.value).filter((each) => each !== site);
  const other = await siteOf(finding, others);
  if (other && address.place.finding === finding) go({ site: other }, { instead: true });
}

store.addEventListener("change", ({ detail }) => {
  if (scene === store) draw(detail.nodes);
});

store.addEventListener("pieces", ({ detail: { nodes } }) => {
  if (scene !== store) return;
  map.refill(nodes);
  panel.update(nodes);
});

$("site").addEventListener("change", () => go({ ...opening(null), ...UNFILTERED, site: $("site").value, finding: "", at: "", plan: "", step: "", group: "" }));

// -------------------------------------------------------------------------------------------------- where the page is
/** The page is at another place. `before` is where it was, null where everything is to be shown anew. */
function arrive(place, before) {
  if (before !== null && place.site !== before.site) return live.follow(place.site);
  if (!store.loaded) return;
  if (travel.to(place.at)) follow(before);
}

/** What is shown is of the moment that is wanted: bring everything to the place. */
function follow(before) {
  const place = address.place;
  const item = itemOf(place);
  if (item?.kind === "host") item.id = scene.hostNamed(item.id);
  tip.hide();
  pick(place);
  findings.show(place);
  panel.show(item);
  activity.until(scene.moment);
  if (needsAll(place)) pieces.whole().then((came) => came && follow(address.place));
  showPlan(place);
  const view = place.tab || (place.finding && !place.plan ? "findings" : "map");
  if (view === "whatif") whatif.draw();
  if (view === "repair") repair.draw();
  tabs.show(view, item?.kind ?? "");
  for (const each of document.querySelectorAll(".opened")) each.classList.remove("opened");
  if (item) map.elementOf(item.kind, item.id)?.classList.add("opened");
  relight();
  showChosen(place, before);
}

/** One plan is shown at a time; what showed the one before ends it first. */
function showPlan({ plan, step: wanted }) {
  const text = scene.whole ? plan : ""; // else it is shown once all pods are here
  if (repair.knows(text)) {
    whatif.show("");
    repair.show(text, wanted);
  } else {
    repair.show("", "");
    whatif.show(whatif.offered ? text : "");
  }
}

/** Whether what is wanted cannot be shown of some pods alone. */
function needsAll({ search: text, plan, pods }) {
  return !scene.whole && Boolean(text || plan || (pods && pods !== "dense") || !map.plain);
}

/** Bring what was just chosen into view. */
function showChosen(place, before) {
  const other = before === null || before.finding !== place.finding || (place.tab === "map" && before.tab !== "map");
  const finding = scene.findings.get(place.finding);
  if (other && finding && (innerWidth > NARROW || place.tab === "map")) {
    const { hosts: [host], nodes: [node] } = scene.involved(finding);
    map.reveal(host ? "host" : "node", host ?? node);
  }
  const item = itemOf(place);
  if (before === null && item) map.reveal(item.kind, item.id);
  const closed = before && itemOf(before);
  if (!item && closed && returning) map.reveal(closed.kind, closed.kind === "host" ? scene.hostNamed(closed.id) : closed.id, true) || map.focus();
  returning = false;
}

let returning = false; // the details were closed by a key: the focus goes back to the map

/** Closing details gives the focus back to the map, where it was in them. */
function keepFocus() {
  returning = $("panel").contains(document.activeElement);
}

/** The scene of another moment is there; null and `error` where it cannot be told, and what was shown stays. */
function showScene(wanted, error = "") {
  scene = wanted ?? scene;
  const past = scene.moment !== null;
  const banner = $("then");
  banner.hidden = !past && !error;
  if (past || error) fill(banner, el("b", {}, "The past"), el("span", { class: error ? "hurts" : null }, error || travel.says()), backToNow());
  $("today-title").textContent = past ? "As it was" : "Today";
  whatif.forget();
  repair.forget();
  map.scene = scene;
  draw(null);
  follow(null);
}

const backToNow = () => el("button", { type: "button", on: { click: () => go({ at: "" }) } }, "Back to now");

// --------------------------------------------------------------------------------------------------------- what is shown
/** The scene has changed on these nodes, null for all. */
function draw(nodes) {
  map.group = groups.show(scene, address.place.group);
  map.plain = legend.show(scene, address.place.colours);
  map.update(nodes);
  findings.update();
  panel.update(nodes);
  overview.show(scene, map.order());
  const grave = summarise($("summary"), scene, (severity) => { go({ ...opening(null), tab: "findings" }); findings.only(severity); });
  for (const each of document.querySelectorAll("#tab-findings b, .foot [data-view=findings] b")) {
    each.textContent = scene.findings.size ? written(scene.findings.size) : "";
    each.className = grave ? "grave" : "";
  }
  entitle({ grave });
  search.find();
  relight();
}

const title = { grave: false, silent: "" };

/** The tab's title: ● where a rule is broken; where nothing is followed, so that it may be old, why not. */
function entitle(change) {
  Object.assign(title, change);
  const parts = [title.silent && `(${title.silent})`, title.grave && "●", [site, "Underhost"].filter(Boolean).join(" · ")];
  document.title = clean(parts.filter(Boolean).join(" "));
}

/** What somebody has picked in the bar: how hosts are grouped, pods drawn and coloured, what is searched for. */
function pick({ group, pods, colours, search: text }) {
  const before = [map.group, map.detail, map.plain].join();
  $("detail").value = pods || "auto";
  $("colours").value = colours || "auto";
  map.group = groups.show(scene, group);
  map.detail = $("detail").value;
  map.plain = legend.show(scene, colours);
  search.show(text);
  if ([map.group, map.detail, map.plain].join() === before) return;
  map.update(null);
  overview.show(scene, map.order());
  beside.update();
}

/** Light up what is searched for, or else the finding that is chosen. */
function relight() {
  const finding = scene.findings.get(address.place.finding);
  const lit = search.lit ?? (finding ? scene.involved(finding) : null);
  const narrow = lit !== null && scene.hosts.size > MANY_HOSTS && lit.hosts.size > 0;
  map.light(lit, narrow);
  $("narrow").hidden = !narrow;
  if (narrow) fill($("narrow"), `Only ${count(lit.hosts.size, "host")} of ${written(scene.hosts.size)}. `, el("button", { type: "button", class: "link", on: { click: () => escape.light() } }, "Show all"));
}

function showOutcome(outcome) {
  const { place } = address;
  if (outcome === null) return beside.hide();
  const away = document.activeElement !== document.body && !document.activeElement.closest("#whatif, #repair");
  const follows = asked && !away && outcome.scene;
  asked = false;
  beside.show(outcome);
  if (place.plan && ["whatif", "repair"].includes(place.tab) && outcome.scene) go({ tab: "" }, { instead: true }); // the outcome is what is wanted now
  if (follows) $("account").querySelector("h2").focus({ preventScroll: true });
}

for (const [id, name] of [["detail", "pods"], ["colours", "colours"]]) {
  $(id).addEventListener("change", ({ target: { value } }) => go({ [name]: value === "auto" ? "" : value }));
}

// ------------------------------------------------------------------------------------------------------------------ keys
const escape = {
  /** Put out what is lit; true where something was. */
  light() {
    const { finding } = address.place;
    if (search.text) go({ search: "" });
    else if (finding) go({ finding: "" });
    else return false;
    return true;
  },
  /** Close or leave what was opened last. */
  last() {
    const place = address.place;
    tip.hide();
    if (itemOf(place)) {
      returning = true;
      go(opening(null));
    } else if (document.activeElement === $("search") || $("search").value) {
      go({ search: "" });
      $("search").blur();
    } else if (place.finding) go({ finding: "" });
    else if (place.plan) {
      go({ plan: "", step: "" });
      if (document.activeElement === document.body) map.focus();
    }
    else if (place.at) go({ at: "" });
  },
};

listenToKeys({
  Escape: () => escape.last(),
  "/": () => { $("search").focus(); $("search").select(); },
  "?": () => $("help-dialog").showModal(),
  f: () => { go({ ...opening(null), tab: innerWidth > NARROW ? "" : "findings" }); (document.querySelector("#findings .item[tabindex='0']") ?? findings.search).focus(); },
  m: () => { go({ ...opening(null), tab: "map" }); map.focus(); },
  t: () => shade.next(),
  l: () => link.copy(),
  ",": () => travel.slider.jump(-1),
  ".": () => travel.slider.jump(1),
});
fill($("help"), icon("question"));
$("help").addEventListener("click", () => $("help-dialog").showModal());
$("search").addEventListener("focus", () => pieces.whole()); // it is going to be needed
$("skip").addEventListener("click", (event) => {
  event.preventDefault();
  map.focus();
});

setInterval(() => tick(document), 1000);
live.follow(address.place.site);
