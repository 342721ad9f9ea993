// The answer to a plan in words: in figures for the banner, in full for the side of the map.

import { icon } from "../basics/icons.js";
import { severityTag } from "../basics/severities.js";
import { count, el, unjudged, written } from "../basics/text.js";

const SHOWN = 60;

/** Whether no node was asked to take a pod: nothing re-creates it, or it is not ours to place. */
const isDown = (reasons) => Object.values(reasons).every((number) => number === 0);

/** The answer, with what ends because its pods are down told from what is mended. */
function sorted(answer) {
  const pending = Object.entries(answer.pending);
  const down = new Set(Object.keys(answer.pending));
  const died = (finding) => [finding.pod, ...(finding.peers ?? [])].some((pod) => down.has(pod));
  return {
    moved: answer.vmMoves.filter((move) => move.to),
    stuck: answer.vmMoves.filter((move) => !move.to),
    waiting: pending.filter(([, reasons]) => !isDown(reasons)),
    lost: pending.filter(([, reasons]) => isDown(reasons)),
    mended: answer.resolvedFindings.filter((finding) => !died(finding)),
    died: answer.resolvedFindings.filter(died),
  };
}

export function figures(answer) {
  const { moved, stuck, waiting, lost, mended, died } = sorted(answer);
  const parts = [
    [stuck.length, "VM", "cannot move; the host does not enter maintenance", true],
    [moved.length, "VM", "on another host"],
    [answer.moves.length, "pod", "on another node"],
    [waiting.length, "pod", "without a node", true],
    [lost.length, "pod", "down, and made anew nowhere", true],
    [answer.blocked.length, "pod", "held by a budget", true],
    [answer.newFindings.length, "new finding", "", true],
    [mended.length, "finding", "mended"],
    [died.length, "finding", "gone with pods that are down", true],
  ].filter(([number]) => number);
  if (!parts.length) return [el("span", {}, "Nothing would change.")];
  return parts.map(([number, what, end, bad]) => el("span", { class: bad ? "hurts" : null }, `${count(number, what)} ${end}`.trim()));
}

/** `open(item)` opens a pod. */
export function account(answer, open) {
  const link = (kind, id) => el("button", { type: "button", class: "link", on: { click: () => open({ kind, id }) } }, icon(kind), id);
  const part = (title, items) => items.length > 0 && [el("h3", {}, `${title} (${written(items.length)})`), el("ul", { class: "list flat" }, items.slice(0, SHOWN)), items.length > SHOWN && el("p", { class: "note" }, `and ${written(items.length - SHOWN)} more`)];
  const why = (reasons) => Object.entries(reasons).map(([reason, number]) => (number ? `${number} × ${reason}` : reason)).join("; ");
  const down = ([pod, reasons]) => el("li", {}, link("pod", pod), el("span", { class: "message" }, why(reasons)));
  const found = (finding) => el("li", {}, el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.rule)), el("span", { class: "message" }, finding.message));
  const { moved, stuck, waiting, lost, mended, died } = sorted(answer);
  return [
    part("VMs that cannot move", stuck.map((move) => el("li", {}, `${move.vm} stays on ${move.from}: no other host can take it (room, a DRS rule, or DRS is off)`))),
    part("New findings", answer.newFindings.map(found)),
    part("Without a node", waiting.map(down)),
    part("Down, and made anew nowhere", lost.map(down)),
    part("Held by disruption budgets", answer.blocked.map((each) => el("li", {}, link("pod", each.pod), el("span", { class: "message" }, each.budgets.join(", "))))),
    part("VMs that move", moved.map((move) => el("li", {}, `${move.vm}: ${move.from} → ${move.to}`))),
    part("Pods that move", answer.moves.map((move) => el("li", {}, link("pod", move.pod), el("span", { class: "message" }, `${move.from ?? "no node"} → ${move.to} (${move.reason})`)))),
    part("Findings that are mended", mended.map(found)),
    part("Findings gone with pods that are down", died.map(found)),
    part("Disruption budgets used", Object.entries(answer.budgets).map(([budget, use]) => el("li", {}, `${budget}: ${use.used} of ${use.allowedBefore} allowed`))),
    unjudged(answer),
  ];
}
