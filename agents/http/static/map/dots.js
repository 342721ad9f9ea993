// The pods of a node as dots on a canvas, for sites of thousands.

import { colourOf } from "../basics/severities.js";
import { stateOf } from "./pods.js";

export const CELL = 8; // a dot and its gap, in pixels
const DOT = 7;

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

  /** How many dots are side by side in so many pixels. */
  columns(width) {
    return Math.max(1, Math.floor((width + 1) / CELL));
  }

  /** Give a canvas its size for so many pods. */
  size(canvas, number, width) {
    canvas.columns = this.columns(width);
    const height = Math.max(1, Math.ceil(number / canvas.columns)) * CELL;
    if (canvas.wide !== width || canvas.high !== height) {
      canvas.wide = width;
      canvas.high = height;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.drawn = false;
    }
  }

  /** Draw the pods of a node. `plain`: findings alone have a colour, and what is lit. */
  draw(canvas, scene, { lit, marks, plain }) {
    const scale = Math.min(2, devicePixelRatio || 1);
    if (canvas.width !== Math.round(canvas.wide * scale)) canvas.width = Math.round(canvas.wide * scale);
    if (canvas.height !== Math.round(canvas.high * scale)) canvas.height = Math.round(canvas.high * scale);
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, canvas.wide, canvas.high);
    if (canvas.lacking) this.#placeholders(context, canvas);
    canvas.list.forEach((pod, at) => {
      const x = (at % canvas.columns) * CELL;
      const y = Math.floor(at / canvas.columns) * CELL;
      const { hue, pattern } = this.palette.of(pod);
      const severity = scene.severity("pod", pod.name);
      const grey = plain && !lit?.pods.has(pod.name);
      const colour = this.#colour(grey && severity ? colourOf(severity) : grey || hue === -1 ? "pinned" : hue === -2 ? "bare" : `h${hue}`);
      context.globalAlpha = lit && !lit.pods.has(pod.name) ? 0.18 : 1;
      if (stateOf(pod) === "running") {
        context.fillStyle = colour;
        context.fillRect(x, y, DOT, DOT);
        if (!grey) this.#pattern(context, pattern, x, y);
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

  /** Where its pods will be, once they are there. */
  #placeholders(context, { number, columns }) {
    context.fillStyle = this.#colour("line");
    for (let at = 0; at < number; at += 1) context.fillRect((at % columns) * CELL, Math.floor(at / columns) * CELL, DOT, DOT);
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
    return canvas.list?.[Math.floor(y / CELL) * canvas.columns + column];
  }
}
