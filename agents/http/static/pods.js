// How the pods of one node are drawn: chips with names, blocks, or, where there are thousands, dots on a canvas.

import { slotClass, workloadKey } from "./palette.js";
import { classesOf, colourOf } from "./severities.js";
import { el, natural, shortName } from "./text.js";

export const NAMES_UP_TO = 160; // pods of a site, without those that belong to their node
export const BLOCKS_UP_TO = 2000;
const CELL = 8; // a dot and its gap, in pixels
const DOT = 7;

/** The detail that a number of pods is shown in, unless it is chosen. */
export function detailFor(pods) {
  if (pods <= NAMES_UP_TO) return "names";
  return pods <= BLOCKS_UP_TO ? "blocks" : "dense";
}

/** Pods in the order in which they are drawn: replicas side by side, what belongs to the node last. */
export function inOrder(pods, palette) {
  const keyed = pods.map((pod) => [palette.of(pod).order, workloadKey(pod), pod]);
  keyed.sort((a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : natural(a[2].name, b[2].name)));
  return keyed.map(([, , pod]) => pod);
}

/** What a pod does, in a word. */
export function stateOf(pod) {
  if (pod.leaving) return "terminating";
  if (!pod.node) return "waiting";
  if (pod.phase !== "Running") return pod.phase.toLowerCase();
  return pod.ready ? "running" : "not ready";
}

export function podLabel(pod, findings) {
  const wrong = findings.length ? `, ${findings.map((each) => each.severity).join(", ")}` : "";
  return `pod ${pod.name}, ${pod.workload || "no workload"}, ${stateOf(pod)}${wrong}`;
}

/** Bring the chips or blocks of a node up to date; an element stays as long as its pod does. */
export function drawElements(holder, pods, scene, palette, detail, depth = 3) {
  const known = holder.pods ?? new Map();
  const first = !holder.pods;
  const wanted = new Map();
  let at = 0;
  for (const pod of inOrder(pods, palette)) {
    const findings = scene.about("pod", pod.name);
    const severity = scene.severity("pod", pod.name);
    const named = detail === "names" && !pod.pinned;
    const signature = [named, pod.workload, stateOf(pod), severity, findings.length].join("|");
    let element = known.get(pod.name);
    if (!element || element.signature !== signature) {
      const fresh = makePod(pod, named, severity, findings, palette);
      fresh.ariaLevel = depth;
      if (element) {
        fresh.tabIndex = element.tabIndex;
        const focused = element === document.activeElement;
        element.replaceWith(fresh);
        if (focused) fresh.focus({ preventScroll: true });
      } else if (!first) {
        fresh.classList.add("new");
      }
      fresh.signature = signature;
      element = fresh;
    }
    wanted.set(pod.name, element);
    if (holder.children[at] !== element) holder.insertBefore(element, holder.children[at] ?? null);
    at += 1;
  }
  for (const [name, element] of known) if (!wanted.has(name)) element.remove();
  while (holder.children.length > at) holder.lastElementChild.remove();
  holder.pods = wanted;
}

function makePod(pod, named, severity, findings, palette) {
  const [label, tail] = shortName(pod);
  const classes = ["pod", slotClass(palette.of(pod)), named ? "named" : "block"];
  if (stateOf(pod) !== "running") classes.push("hollow");
  if (pod.leaving) classes.push("leaving");
  if (severity) classes.push("wrong", classesOf(severity));
  const element = el(
    "div",
    { class: classes.join(" "), role: "treeitem", tabindex: -1, "aria-label": podLabel(pod, findings) },
    el("i", { class: "swatch" }),
    named && el("span", { class: "label" }, label),
    named && tail && el("span", { class: "tail" }, tail),
  );
  element.item = { kind: "pod", id: pod.name };
  return element;
}

// ------------------------------------------------------------------------------------------------------------- dots
export class Dots {
  #colours = null;

  constructor(palette) {
    this.palette = palette;
  }

  /** Colours are the style sheet's: asked again when the theme changes. */
  forget() {
    this.#colours = null;
  }

  #colour(name) {
    this.#colours ??= new Map();
    if (!this.#colours.has(name)) {
      const style = getComputedStyle(document.documentElement);
      this.#colours.set(name, style.getPropertyValue(`--${name}`).trim() || "#888");
    }
    return this.#colours.get(name);
  }

  /** Give a canvas its size for so many pods. */
  size(canvas, number, width) {
    canvas.columns = Math.max(1, Math.floor((width + 1) / CELL));
    const height = Math.max(1, Math.ceil(number / canvas.columns)) * CELL;
    if (canvas.wide !== width || canvas.high !== height) {
      canvas.wide = width;
      canvas.high = height;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.drawn = false;
    }
  }

  draw(canvas, scene, lit, marks) {
    const scale = Math.min(2, devicePixelRatio || 1);
    if (canvas.width !== Math.round(canvas.wide * scale)) canvas.width = Math.round(canvas.wide * scale);
    if (canvas.height !== Math.round(canvas.high * scale)) canvas.height = Math.round(canvas.high * scale);
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, canvas.wide, canvas.high);
    canvas.list.forEach((pod, at) => {
      const x = (at % canvas.columns) * CELL;
      const y = Math.floor(at / canvas.columns) * CELL;
      const { hue, pattern } = this.palette.of(pod);
      const colour = this.#colour(hue === -1 ? "pinned" : hue === -2 ? "bare" : `h${hue}`);
      const severity = scene.severity("pod", pod.name);
      context.globalAlpha = lit && !lit.pods.has(pod.name) ? 0.18 : 1;
      if (stateOf(pod) === "running") {
        context.fillStyle = colour;
        context.fillRect(x, y, DOT, DOT);
        this.#pattern(context, pattern, x, y);
      } else {
        context.strokeStyle = colour;
        context.lineWidth = 1.5;
        context.strokeRect(x + 1, y + 1, DOT - 2, DOT - 2);
      }
      if (marks?.pods.has(pod.name)) {
        context.strokeStyle = this.#colour("accent");
        context.lineWidth = 2;
        context.strokeRect(x + 0.5, y + 0.5, DOT - 1, DOT - 1);
      }
      if (severity) {
        context.strokeStyle = this.#colour(colourOf(severity));
        context.lineWidth = 2;
        context.strokeRect(x + 0.5, y + 0.5, DOT - 1, DOT - 1);
      }
    });
    canvas.drawn = true;
  }

  #pattern(context, pattern, x, y) {
    if (!pattern) return;
    context.fillStyle = "rgba(255,255,255,.75)";
    if (pattern === 1) context.fillRect(x, y + 3, DOT, 1);
    else if (pattern === 2) context.fillRect(x + 3, y, 1, DOT);
    else context.fillRect(x + 2, y + 2, 3, 3);
  }

  /** The pod at a place on a canvas. */
  at(canvas, x, y) {
    const column = Math.floor(x / CELL);
    if (column < 0 || column >= canvas.columns || y < 0) return undefined;
    return canvas.list[Math.floor(y / CELL) * canvas.columns + column];
  }
}
