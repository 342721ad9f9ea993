// The worker's table of severities: how bad each is, and what it looks like. Read once, before anything of a site.

import { icon } from "./icons.js";
import { el, written } from "./text.js";

const UNKNOWN = { colour: "grey", icon: "question" };
const rows = new Map();

/** Take the rows of `/api/v1/severities`, worst first. */
export function setSeverities(severities) {
  rows.clear();
  const byRule = (table) => new Map(Object.entries(table)); // a rule may have any name: an object also has a "constructor"
  severities.forEach((row, rank) => rows.set(row.name, { ...row, rank, remedies: byRule(row.remedies), runbooks: byRule(row.runbooks) }));
}

/** All names, worst first. */
export const severities = () => [...rows.keys()];

/** 0 for the worst; what is not in the table comes last. */
export const rankOf = (severity) => rows.get(severity)?.rank ?? rows.size;

/** Whether a rule is broken now, and not only a wish or an expectation. */
export const isGrave = (severity) => rows.get(severity)?.grave ?? false;

/** What ends a finding, in one sentence, and the way to its runbook; empty for a severity that is not in the table. */
export function adviceOn({ severity, rule }) {
  const row = rows.get(severity);
  if (!row) return [];
  const href = row.runbooks.get(rule) ?? row.runbook;
  const remedy = (row.remedies.get(rule) ?? row.remedy).split("`"); // what is between two of them is code
  return [remedy.map((part, at) => (at % 2 ? el("code", {}, part) : part)), " ", el("a", { class: "link", href, target: "_blank", rel: "noopener" }, "Runbook")];
}

/** The variable of the style sheet that holds its colour, without the dashes. */
export const colourOf = (severity) => `s-${(rows.get(severity) ?? UNKNOWN).colour}`;

/** The classes of an element that shows it; none for no severity. */
export function classesOf(severity) {
  if (!severity) return "";
  return isGrave(severity) ? `${colourOf(severity)} grave` : colourOf(severity);
}

export const severityIcon = (severity) => icon((rows.get(severity) ?? UNKNOWN).icon);

export function severityTag(severity) {
  return el("span", { class: `severity ${classesOf(severity)}` }, severityIcon(severity), severity);
}

/** A button for the findings of one severity. */
export function severityChip(severity, number, { pressed, click }) {
  return el(
    "button",
    { type: "button", class: `chip ${classesOf(severity)}`, "data-severity": severity, "aria-pressed": pressed, on: { click } },
    severityIcon(severity), severity, " ", el("b", {}, written(number)),
  );
}

/** The worse of what is known first, and of those the newest. */
export const byWeight = (one, other) => rankOf(one.severity) - rankOf(other.severity) || (one.firstSeen < other.firstSeen ? 1 : -1);
