// The line of figures: how large the site is, how much is wrong, or that nothing is.

import { icon } from "../basics/icons.js";
import { isGrave, severities, severityChip } from "../basics/severities.js";
import { el, fill, leftOut, written } from "../basics/text.js";

/** Draw it for a scene; true where a rule is broken. `only(severity)` is called with what somebody wants to see. */
export function summarise(root, scene, only) {
  const counts = new Map();
  for (const finding of scene.findings.values()) counts.set(finding.severity, (counts.get(finding.severity) ?? 0) + 1);
  const figure = (number, what, more = "") => el("span", { class: `figure${more}` }, el("b", {}, written(number)), ` ${what}`);
  const sizes = [[scene.hosts.size, "host"], [scene.nodes.size, "node"], [scene.size, "pod"]];
  const waiting = scene.waiting().length;
  const clear = () => el("span", { class: `chip ${scene.clear ? "good" : "doubt"}`, title: leftOut(scene) || null }, icon(scene.clear ? "check" : "question"), scene.clear ? "no open finding" : "not all is judged");
  fill(
    root,
    sizes.map(([number, what]) => figure(number, number === 1 ? what : `${what}s`)),
    waiting > 0 && figure(waiting, "waiting for a node", " waiting"),
    el("span", { class: "gap" }),
    counts.size
      ? severities().filter((severity) => counts.has(severity)).map((severity) => severityChip(severity, counts.get(severity), { click: () => only(severity) }))
      : clear(),
  );
  return [...counts.keys()].some(isGrave);
}
