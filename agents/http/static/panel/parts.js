// What the details of a host, a node and a pod are made of.

import { icon } from "../basics/icons.js";
import { adviceOn, byWeight, severityTag } from "../basics/severities.js";
import { count, el } from "../basics/text.js";
import { timeOf } from "../basics/times.js";

export const ROWS = 60; // of a long list, before it ends

/** A button that opens a pod, node or host. */
export function link({ open }, kind, id, text) {
  return el("button", { type: "button", class: "link", "data-key": `${kind}:${id}`, on: { click: () => open({ kind, id }) } }, icon(kind), text);
}

export function head({ open }, kind, title, ...facts) {
  const close = el("button", { type: "button", class: "icon", "data-key": "close", "aria-label": "Close details", on: { click: () => open(null) } }, icon("close"));
  const subtitle = el("p", { class: "facts" }, facts.flat().filter(Boolean).map((fact) => el("span", {}, fact)));
  return el("header", { class: "panel-head" }, el("p", { class: "kind" }, icon(kind), kind, close), el("h2", { tabindex: -1, "data-key": "title" }, title), subtitle);
}

/** The findings about it; each leads to itself in the list. */
export function findingsAbout({ scene, choose }, kind, id) {
  const findings = [...scene().about(kind, id)].sort(byWeight);
  if (!findings.length) return null;
  return [
    el("h3", {}, count(findings.length, "finding")),
    el("ul", { class: "list flat" }, findings.slice(0, ROWS).map((finding) =>
      el("li", {},
        el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.rule), timeOf(finding.firstSeen)),
        el("button", { type: "button", class: "link plain message", "data-key": `finding:${finding.id}`, on: { click: () => choose(finding.id) } }, finding.message),
        el("span", { class: "note" }, adviceOn(finding))))),
  ];
}

/** What was decided about it, from the topics; in the past by then. */
export function historyOf({ scene }, entries) {
  if (!entries) return null;
  const moment = scene().moment;
  const then = entries.filter((entry) => moment === null || Date.parse(entry.at) <= Date.parse(moment));
  return [
    el("h3", {}, "History"),
    then.length
      ? el("ol", { class: "list happened" }, then.map((entry) => el("li", { class: entry.tone ? `tone-${entry.tone}` : null, title: positions(entry) }, timeOf(entry.at), el("span", {}, entry.text))))
      : el("p", { class: "note" }, "Nothing was decided about it in what the topics remember."),
  ];
}

function positions(entry) {
  const at = Object.entries(entry.snapshot ?? {}).map(([topic, offset]) => `${topic} ${offset}`);
  return `${entry.topic}${at.length ? `, decided from ${at.join(", ")}` : ""}`;
}

/** Facts with their names; those that are not known are left out. */
export function table(title, rows) {
  const known = rows.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  if (!known.length) return null;
  return [el("h3", {}, title), el("dl", { class: "figures" }, known.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))))];
}
