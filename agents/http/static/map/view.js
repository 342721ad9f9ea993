// The physical map: groups of hosts, on each its nodes, on those the pods. Elements stay as long as what they show does;
// a change redraws the nodes that it names. A node whose VM moves is seen to move.

import { icon } from "../basics/icons.js";
import { classesOf, severityIcon } from "../basics/severities.js";
import { count, el, fill, natural, written } from "../basics/text.js";
import { CELL, Dots } from "./dots.js";
import { detailFor, drawElements, inOrder } from "./pods.js";

const NO_HOST = ""; // the id of the place of nodes whose host is not known
const MANY = 99; // columns of a group that takes the whole width
const LAZY = 48; // hosts above which only those near the view hold their nodes
const HOST = 62; // pixels of a host without its nodes, in dots
const NODE = 24; // pixels of a node without its pods
const NEAR = 600; // pixels that count as near
const TRAY = 300; // waiting pods that are shown
const MOVE = 900; // milliseconds of a VM on its way
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class MapView {
  #groups = new Map();
  #hosts = new Map();
  #nodes = new Map();
  #lit = null;
  #dots;
  #width = 0;
  #redraw = new Set();
  #marks = null;
  #frame = 0;
  #lazy = false;
  #planned = []; // what is drawn: groups, with their hosts and nodes

  /**
   * `pick(item)` is called with {kind, id} of what is opened, `point(item, element)` of what is looked at, `need(nodes)`
   * with nodes in view whose pods are not there.
   */
  constructor(root, { palette, pick, point, need, animate = true }) {
    this.root = root;
    this.need = need;
    this.palette = palette;
    this.pick = pick;
    this.animate = animate;
    this.group = "";
    this.detail = "auto";
    this.plain = false; // findings alone have a colour
    this.current = null;
    this.#dots = new Dots(palette);
    this.#seen = new IntersectionObserver((entries) => this.#seenChanged(entries), { root: root.closest(".pane"), rootMargin: "300px" });
    this.#near = new IntersectionObserver((entries) => this.#nearChanged(entries), { root: root.closest(".pane"), rootMargin: `${NEAR}px` });
    new ResizeObserver(() => this.#resized()).observe(root);
    root.addEventListener("click", (event) => this.#clicked(event));
    root.addEventListener("pointermove", (event) => point(...this.#under(event)));
    root.addEventListener("pointerleave", () => point(null));
    root.addEventListener("focusin", (event) => {
      const element = event.target.closest("[role=treeitem]");
      if (element) this.#roam(element);
      point(event.target.matches(":focus-visible") ? element?.item ?? null : null, element);
    });
    root.addEventListener("focusout", () => point(null));
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  #seen;
  #near;
  #tray = null;

  /** Show this scene (a store, or the outcome of a simulation). */
  show(scene) {
    this.scene = scene;
    this.update(null);
  }

  /** The detail in which pods are drawn now. */
  get level() {
    if (this.detail !== "auto") return this.detail;
    return detailFor(this.scene.own);
  }

  themeChanged() {
    this.#dots.forget();
    this.#drawAll();
  }

  // -------------------------------------------------------------------------------------------------------- drawing
  /** Bring everything up to date; `touched` are the nodes that look other than before, null for all. */
  update(touched) {
    const level = this.level;
    const fresh = this.root.dataset.detail !== level;
    this.root.dataset.detail = level;
    this.root.classList.toggle("grouped", Boolean(this.group));
    this.root.classList.toggle("plain", this.plain);
    const moving = this.#moving(touched);
    const wanted = [];
    const hosts = new Set();
    const nodes = new Set();
    const plan = (this.#planned = this.#plan());
    this.#lazy = level === "dense" && this.scene.hosts.size > LAZY;
    for (const group of plan) {
      wanted.push(this.#drawGroup(group));
      for (const { host, on } of group.hosts) {
        hosts.add(host.id);
        for (const node of on) nodes.add(node.name);
      }
    }
    const tray = this.#drawTray(level);
    place(this.root, tray ? [tray, ...wanted] : wanted);
    this.#forget(this.#hosts, hosts);
    this.#forget(this.#nodes, nodes);
    if (this.#lazy) this.#openNear(plan);
    const width = this.#measured(level);
    for (const name of nodes) {
      const element = this.#nodes.get(name);
      if (element && (touched === null || fresh || touched.has(name) || !element.filled)) this.#fillNode(name, level, width);
    }
    this.#land(moving);
    if (!this.current?.isConnected) this.#roam(this.root.querySelector("[role=treeitem]"));
    this.#relight();
    if (this.#marks) this.mark(this.#marks);
  }

  #forget(known, wanted) {
    for (const [id, element] of known) {
      if (wanted.has(id)) continue;
      if (element.canvas) this.#seen.unobserve(element.canvas);
      this.#near.unobserve(element);
      element.remove();
      known.delete(id);
    }
  }

  #plan() {
    const groups = new Map();
    const homeless = new Map();
    for (const host of this.scene.hosts.values()) {
      const on = [...this.scene.nodesOn(host.id)].sort((a, b) => natural(a.name, b.name));
      const value = this.#valueOf(host, on);
      (groups.get(value) ?? groups.set(value, []).get(value)).push({ host, on });
    }
    for (const node of this.scene.nodesOn(NO_HOST)) {
      const value = this.group && this.group !== "cluster" ? node.labels?.[this.group] ?? "" : "";
      (homeless.get(value) ?? homeless.set(value, []).get(value)).push(node);
    }
    for (const [value, on] of homeless) {
      const name = this.scene.vsphere ? "No known host" : "Nodes";
      on.sort((a, b) => natural(a.name, b.name));
      const host = { id: `${NO_HOST}\n${value}`, name, state: "connected", pseudo: true };
      (groups.get(value) ?? groups.set(value, []).get(value)).push({ host, on });
    }
    for (const hosts of groups.values()) {
      hosts.sort((a, b) => !!a.host.pseudo - !!b.host.pseudo || natural(a.host.name, b.host.name));
    }
    return [...groups].sort(([a], [b]) => !a - !b || natural(a, b)).map(([value, hosts]) => ({ value, hosts }));
  }

  /** The pods that wait for a node, above everything. */
  #drawTray(level) {
    const waiting = this.scene.waiting();
    if (!waiting.length) return null;
    if (!this.#tray) {
      this.#tray = newPlace("tray", "pods", 1, { kind: "tray", id: `${NO_HOST}\ntray` });
    }
    const text = `${count(waiting.length, "pod")} ${waiting.length === 1 ? "waits" : "wait"} for a node`;
    fill(this.#tray.head, icon("pod"), text, waiting.length > TRAY && el("small", {}, `the first ${TRAY} are shown`));
    drawElements(this.#tray.pods, waiting.slice(0, TRAY), this.scene, this.palette, level === "dense" ? "blocks" : level, 2);
    return this.#tray;
  }

  #valueOf(host, on) {
    if (!this.group) return "";
    if (this.group === "cluster") return host.cluster ?? "";
    const own = host.labels?.[this.group];
    if (own !== undefined) return own;
    const values = new Set(on.map((node) => node.labels?.[this.group]).filter((value) => value !== undefined));
    return values.size > 1 ? [...values].sort(natural).join(" + ") : [...values][0] ?? "";
  }

  #drawGroup({ value, hosts }) {
    let section = this.#groups.get(value);
    if (!section) {
      const title = el("h2", { class: "group-title" });
      const grid = el("div", { class: "hosts", role: "none" });
      section = el("section", { class: "group", role: "none" }, title, grid);
      Object.assign(section, { heading: title, grid });
      this.#groups.set(value, section);
    }
    section.heading.hidden = !this.group;
    section.style.setProperty("--columns", hosts.some(({ host }) => host.pseudo) ? MANY : hosts.length);
    if (this.group) {
      const nodes = hosts.reduce((sum, { on }) => sum + on.length, 0);
      const pods = hosts.reduce((sum, { on }) => sum + on.reduce((all, node) => all + this.scene.numberOn(node.name), 0), 0);
      const label = this.group === "cluster" ? "vSphere cluster" : this.group.slice(this.group.lastIndexOf("/") + 1);
      const name = value ? [el("span", {}, label), value] : [`no ${label}`];
      fill(section.heading, ...name, el("small", {}, `${count(hosts.length, "host")}, ${count(nodes, "node")}, ${count(pods, "pod")}`));
    }
    place(section.grid, hosts.map((each) => this.#drawHost(each)));
    return section;
  }

  #drawHost({ host, on }) {
    let element = this.#hosts.get(host.id);
    if (!element) {
      element = newPlace("host", "nodes", 1, { kind: "host", id: host.id });
      this.#hosts.set(host.id, element);
      this.#near.observe(element);
    }
    element.on = on;
    const pods = on.reduce((sum, node) => sum + this.scene.numberOn(node.name), 0);
    const findings = host.pseudo ? [] : this.scene.about("host", host.id);
    const severity = host.pseudo ? "" : this.scene.severity("host", host.id);
    const lost = host.lost ? "lost" : host.state !== "connected" ? host.state : "";
    const signature = [host.name, lost, on.length, pods, severity, findings.length].join("|");
    if (element.signature !== signature) {
      element.signature = signature;
      element.className = ["host", host.pseudo && "pseudo", lost && "off", severity && `wrong ${classesOf(severity)}`].filter(Boolean).join(" ");
      fill(
        element.head,
        icon(host.pseudo ? "node" : "host"),
        unseen("host "),
        el("span", { class: "name", title: host.name }, host.name),
        lost && [unseen(", "), el("span", { class: "flag" }, lost)],
        badge(severity, findings.length),
        unseen(`, ${count(on.length, "node")}, `),
        el("small", {}, count(pods, "pod")),
      );
    }
    const there = (element.open ||= !this.#lazy || Boolean(host.pseudo));
    if (there) place(element.nodes, on.length ? on.map((node) => this.#drawNode(node)) : [this.#empty(element, host)]);
    const height = this.#lazy ? this.#heightOf(on) : 0;
    if (height) element.style.setProperty("contain-intrinsic-size", `auto ${height}px`);
    element.style.minHeight = there ? "" : `${height}px`;
    return element;
  }

  /** About how high a host with these nodes is, so that little moves once it is drawn. */
  #heightOf(on) {
    const columns = this.#dots.columns(this.#width || 160);
    return on.reduce((sum, node) => sum + NODE + Math.ceil(this.scene.numberOn(node.name) / columns) * CELL, HOST);
  }

  /** Of many hosts those that are in view hold their nodes, and those that were. */
  #openNear(plan) {
    for (const { hosts } of plan) {
      for (const { host } of hosts) {
        const element = this.#hosts.get(host.id);
        const { top, height } = element.getBoundingClientRect();
        if (height && top < innerHeight + NEAR && !element.open) this.#openHost(element);
      }
    }
  }

  /** The pods of these nodes have come. */
  refill(nodes) {
    const { level } = this;
    for (const name of nodes) if (this.#nodes.has(name)) this.#fillNode(name, level, this.#width);
    this.#relight();
  }

  #nearChanged(entries) {
    for (const { target, isIntersecting } of entries) if (isIntersecting && this.#lazy && !target.open) this.#openHost(target, true);
  }

  /** Draw the nodes of a host. `fill`: their pods, too. */
  #openHost(element, fill = false) {
    element.open = true;
    element.style.minHeight = "";
    if (!element.on.length) return;
    place(element.nodes, element.on.map((node) => this.#drawNode(node)));
    const names = element.on.map((node) => node.name);
    const lacking = names.filter((name) => this.scene.lacks(name));
    if (lacking.length) this.need(lacking);
    if (!fill) return;
    const width = this.#measured("dense");
    for (const name of names) {
      this.#fillNode(name, "dense", width);
      this.#nodes.get(name).classList.toggle("lit", this.#lit?.nodes.has(name) ?? false);
      this.#nodes.get(name).classList.toggle("moved", this.#marks?.nodes.has(name) ?? false);
    }
  }

  #empty(element, host) {
    element.empty ??= el("div", { class: "empty" });
    element.empty.textContent = host.lost ? "this host is gone" : "no node here";
    return element.empty;
  }

  #drawNode(node) {
    let element = this.#nodes.get(node.name);
    if (!element) {
      element = newPlace("node", "pods", 2, { kind: "node", id: node.name });
      this.#nodes.set(node.name, element);
    }
    const severity = this.scene.severity("node", node.name);
    const zone = node.labels?.["topology.kubernetes.io/zone"] ?? "";
    const flags = [node.lost && "lost", !node.ready && node.ready !== undefined && "not ready", node.cordoned && "cordoned"].filter(Boolean);
    const pods = this.scene.numberOn(node.name);
    const signature = [severity, zone, flags, pods, this.group].join("|");
    if (element.signature !== signature) {
      element.signature = signature;
      element.className = ["node", flags.length && "off", severity && `wrong ${classesOf(severity)}`].filter(Boolean).join(" ");
      const seen = zone && this.group !== "topology.kubernetes.io/zone";
      fill(
        element.head,
        unseen("node "),
        el("span", { class: "name", title: node.name }, node.name),
        flags.map((flag) => [unseen(", "), el("span", { class: "flag" }, flag)]),
        zone && [unseen(", zone "), el("span", { class: seen ? "zone" : "unseen", title: `zone ${zone}` }, zone)],
        unseen(`, ${count(pods, "pod")}${severity && `, ${severity}`}`),
      );
    }
    return element;
  }

  #fillNode(name, level, width) {
    const element = this.#nodes.get(name);
    element.filled = true;
    if (level === "dense") {
      if (!element.canvas) {
        element.canvas = el("canvas", { "aria-hidden": "true" });
        element.canvas.node = name;
        this.#seen.observe(element.canvas);
      }
      if (element.pods.firstChild !== element.canvas) {
        element.pods.pods = undefined;
        fill(element.pods, element.canvas);
      }
      element.canvas.list = null; // made once it is in view
      element.canvas.number = this.scene.numberOn(name);
      element.canvas.drawn = false;
      this.#dots.size(element.canvas, element.canvas.number, width);
      if (element.canvas.visible) this.#later(element.canvas);
      return;
    }
    if (element.canvas) {
      this.#seen.unobserve(element.canvas);
      element.canvas.remove();
      element.canvas = null;
    }
    drawElements(element.pods, this.scene.podsOn(name), this.scene, this.palette, level);
  }

  #measured(level) {
    if (level !== "dense") return 0;
    const first = this.root.querySelector(".host:not(.pseudo) .pods") ?? this.root.querySelector(".pods");
    this.#width = Math.max(40, Math.floor(first ? widthInside(first) : 120));
    return this.#width;
  }

  #resized() {
    if (!this.scene || this.root.dataset.detail !== "dense" || !this.root.clientWidth) return;
    const before = this.#width;
    if (this.#measured("dense") === before) return;
    for (const element of this.#nodes.values()) {
      if (element.canvas) this.#dots.size(element.canvas, element.canvas.number, this.#width);
    }
    this.#drawAll();
  }

  #seenChanged(entries) {
    for (const entry of entries) {
      entry.target.visible = entry.isIntersecting;
      if (entry.isIntersecting && !entry.target.drawn) this.#later(entry.target);
    }
  }

  #drawAll() {
    for (const element of this.#nodes.values()) {
      if (!element.canvas) continue;
      element.canvas.drawn = false;
      if (element.canvas.visible) this.#later(element.canvas);
    }
  }

  #later(canvas) {
    this.#redraw.add(canvas);
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      for (const each of this.#redraw) {
        each.lacking = this.scene.lacks(each.node);
        each.list ??= inOrder(this.scene.podsOn(each.node), this.palette);
        this.#dots.draw(each, this.scene, { lit: this.#lit, marks: this.#marks, plain: this.plain });
      }
      const lacking = [...this.#redraw].filter((each) => each.lacking).map((each) => each.node);
      this.#redraw.clear();
      if (lacking.length) this.need(lacking);
    });
  }

  // --------------------------------------------------------------------------------------------------- a VM on its way
  #moving(touched) {
    if (!this.animate || touched === null || !touched.size || calm.matches) return [];
    const found = [];
    for (const name of touched) {
      const element = this.#nodes.get(name);
      const node = this.scene.nodes.get(name);
      if (!element?.isConnected || !node) continue;
      const from = element.closest(".host")?.item.id;
      if (from !== undefined && from !== node.host && this.scene.hosts.has(node.host)) {
        found.push({ element, from: element.getBoundingClientRect(), copy: copyOf(element) });
      }
    }
    return found;
  }

  #land(moving) {
    for (const { element, from, copy } of moving) {
      if (!element.isConnected) continue; // where it goes is out of view
      const to = element.getBoundingClientRect();
      const far = to.bottom < 0 || to.top > innerHeight;
      element.classList.add("landing");
      const done = () => {
        copy.remove();
        element.classList.remove("landing");
        element.classList.add("landed");
        setTimeout(() => element.classList.remove("landed"), 2500);
      };
      Object.assign(copy.style, { left: `${from.left}px`, top: `${from.top}px`, width: `${from.width}px`, height: `${from.height}px` });
      document.body.append(copy);
      const path = [
        { transform: "none", boxShadow: "0 2px 6px rgb(0 0 0 / .2)" },
        { transform: `translate(${(to.left - from.left) / 2}px, ${(to.top - from.top) / 2 - 24}px) scale(1.04)`, boxShadow: "0 18px 36px rgb(0 0 0 / .35)", offset: 0.5 },
        { transform: `translate(${to.left - from.left}px, ${to.top - from.top}px)`, boxShadow: "0 2px 6px rgb(0 0 0 / .2)", opacity: far ? 0 : 1 },
      ];
      const flight = copy.animate(path, { duration: MOVE, easing: "cubic-bezier(.4,.1,.2,1)" });
      flight.onfinish = done;
      flight.oncancel = done;
    }
  }

  // ------------------------------------------------------------------------------------------------------ what is lit
  /** Light these up ({pods, nodes, hosts}) and dim the rest; null puts the light out. `narrow` leaves out dark hosts. */
  light(lit, narrow = false) {
    this.#lit = lit;
    this.root.classList.toggle("narrowed", lit !== null && narrow && lit.hosts.size > 0);
    this.#relight();
    this.#drawAll();
  }

  #relight() {
    const lit = this.#lit;
    this.root.classList.toggle("dimmed", lit !== null);
    for (const [id, element] of this.#hosts) element.classList.toggle("lit", lit?.hosts.has(id) ?? false);
    for (const [pod, each] of this.#tray?.pods.pods ?? []) each.classList.toggle("lit", lit?.pods.has(pod) ?? false);
    for (const [name, element] of this.#nodes) {
      element.classList.toggle("lit", lit?.nodes.has(name) ?? false);
      for (const [pod, each] of element.pods.pods ?? []) each.classList.toggle("lit", lit?.pods.has(pod) ?? false);
    }
  }

  /** Mark the pods and nodes that are elsewhere than in another scene. */
  mark(marks) {
    this.#marks = marks;
    for (const [name, element] of this.#nodes) {
      element.classList.toggle("moved", marks.nodes.has(name));
      for (const [pod, each] of element.pods.pods ?? []) each.classList.toggle("moved", marks.pods.has(pod));
    }
    this.#drawAll();
  }

  /** Bring something into view, and focus it if asked. */
  reveal(kind, id, focus = false) {
    const element = this.elementOf(kind, id);
    if (!element) return false;
    element.scrollIntoView({ block: "center", inline: "center", behavior: calm.matches ? "auto" : "smooth" });
    if (focus) (element.head ?? element).focus({ preventScroll: true });
    return true;
  }

  /** The hosts in the order in which they are shown. */
  order() {
    return this.#planned.flatMap(({ hosts }) => hosts.map(({ host }) => host).filter((host) => !host.pseudo));
  }

  elementOf(kind, id) {
    if (kind === "host") return this.#hosts.get(id);
    const at = kind === "node" ? id : this.scene.pods.get(id)?.node;
    const host = this.#hosts.get(this.scene.nodes.get(at)?.host);
    if (this.#lazy && host && !host.open) this.#openHost(host, true);
    if (kind === "node") return this.#nodes.get(id);
    const node = this.#nodes.get(this.scene.pods.get(id)?.node) ?? this.#tray;
    return node?.pods.pods?.get(id) ?? node ?? undefined;
  }

  // ------------------------------------------------------------------------------------------------ pointer and keys
  #under(event) {
    if (event.target.tagName === "CANVAS") {
      const pod = this.#dots.at(event.target, event.offsetX, event.offsetY);
      if (pod) return [{ kind: "pod", id: pod.name }, event.target, event];
    }
    const element = event.target.closest(".pod, .node, .host-head");
    return element ? [element.item, element, event] : [null];
  }

  #clicked(event) {
    const [item] = this.#under(event);
    if (item && !item.id.startsWith(`${NO_HOST}\n`)) this.pick(item);
  }

  #roam(element) {
    if (!element || element === this.current) return;
    if (this.current) this.current.tabIndex = -1;
    this.current = element;
    element.tabIndex = 0;
    const host = element.parentElement;
    if (this.#lazy && element.item.kind === "host" && !host.open) this.#openHost(host, true);
  }

  focus() {
    (this.current?.isConnected ? this.current : this.root.querySelector("[role=treeitem]"))?.focus();
  }

  #key(event) {
    const here = event.target.closest("[role=treeitem]");
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = this.#next(event.key, here);
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (to === null) {
      if (!here.item.id.startsWith(`${NO_HOST}\n`)) this.pick(here.item);
      return;
    }
    to.focus();
    to.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Where a key leads: an element, null for opening what is focused, undefined where the key is none of ours. */
  #next(key, here) {
    if (key === "Enter" || key === " ") return null;
    if (key === "ArrowRight") return (here.item.kind === "pod" ? null : here.nextElementSibling.querySelector("[role=treeitem]")) ?? here;
    if (key === "ArrowLeft") return here.parentElement.parentElement.closest(".node, .host, .tray")?.head ?? here;
    const all = [...this.root.querySelectorAll("[role=treeitem]")];
    const at = all.indexOf(here);
    if (key === "ArrowDown") return all[at + 1] ?? here;
    if (key === "ArrowUp") return all[at - 1] ?? here;
    if (key === "Home") return all[0];
    if (key === "End") return all.at(-1);
    if (key !== "PageDown" && key !== "PageUp") return undefined;
    const hosts = all.filter((element) => element.item.kind === "host");
    const host = hosts.indexOf(here.closest(".host")?.head);
    if (key === "PageUp" && here !== hosts[host]) return hosts[host];
    return hosts[host + (key === "PageDown" ? 1 : -1)] ?? here;
  }
}

function badge(severity, number) {
  return severity && [unseen(", "), el("span", { class: `badge ${classesOf(severity)}`, title: `${number} findings, worst: ${severity}` }, severityIcon(severity), written(number), unseen(number === 1 ? " finding" : " findings"))];
}

/** Text for those who hear the page. */
const unseen = (text) => el("span", { class: "unseen" }, text);

/** A place on the map: its head, which is what keys and readers go to, and what it holds. */
function newPlace(kind, holds, level, item) {
  const head = el("div", { class: `${kind}-head`, role: "treeitem", "aria-level": level, "aria-expanded": "true", tabindex: -1 });
  const inside = el("div", { class: holds });
  const element = el("div", { class: kind }, head, inside);
  head.item = item;
  return Object.assign(element, { head, item, [holds]: inside });
}

/** The width that an element has for what it holds, in pixels. */
function widthInside(element) {
  const style = getComputedStyle(element);
  return element.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
}

function place(parent, wanted) {
  wanted.forEach((element, at) => {
    if (parent.children[at] !== element) parent.insertBefore(element, parent.children[at] ?? null);
  });
  while (parent.children.length > wanted.length) parent.lastElementChild.remove();
}

function copyOf(element) {
  const copy = element.cloneNode(true);
  const drawn = element.querySelector("canvas");
  if (drawn?.width) copy.querySelector("canvas").getContext("2d").drawImage(drawn, 0, 0);
  for (const each of [copy, ...copy.querySelectorAll("[role],[id]")]) {
    each.removeAttribute("role");
    each.removeAttribute("tabindex");
  }
  copy.classList.add("flying");
  copy.setAttribute("aria-hidden", "true");
  return copy;
}
