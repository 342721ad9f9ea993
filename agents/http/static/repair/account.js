// A plan in words: in figures for the banner, in full for the side of the map.

import { severityTag } from "../basics/severities.js";
import { count, el, unjudged } from "../basics/text.js";

/** What a repair costs and leaves. */
export function repairFigures({ steps, objective, resolvedFindings, optimal }) {
  if (!steps.length && !objective.findingsLeft) return [el("span", {}, "Nothing is to be repaired.")];
  const copied = objective.memoryMiB ? ` (${(objective.memoryMiB / 1024).toFixed(1)} GiB)` : ""; // 0: the inventory does not say it
  return figures([
    [objective.vmotions, `${count(objective.vmotions, "vMotion")}${copied}`],
    [objective.evictions, count(objective.evictions, "eviction")],
    [resolvedFindings.length, `${count(resolvedFindings.length, "finding")} resolved`],
    [objective.findingsLeft, `${count(objective.findingsLeft, "finding")} left`, true],
    [true, optimal ? "no plan is cheaper" : "that no plan is cheaper is not proven"],
  ]);
}

/** What a rolling maintenance takes. */
export function maintenanceFigures({ waves, blocked, newFindings, lowerBound, optimal }) {
  const hosts = waves.reduce((sum, wave) => sum + wave.hosts.length, 0);
  const moves = waves.reduce((sum, wave) => sum + wave.vmMoves.length, 0);
  return figures([
    [true, `${count(hosts, "host")} in ${count(waves.length, "wave")}`],
    [true, optimal ? "no order has fewer" : `no order has fewer than ${lowerBound}`],
    [moves, `${count(moves, "move")} of VMs`],
    [blocked.length, `${count(blocked.length, "host")} cannot be emptied`, true],
    [newFindings.length, count(newFindings.length, "new finding"), true],
  ]);
}

/** How far maintenance is that is carried out. */
export function carriedOut({ state, hosts, why, done }) {
  const had = hosts.filter((each) => each.state === "done").length;
  if (done) return `Maintenance was carried out: ${count(had, "host")} done.`;
  if (state === "ended") return `Maintenance has stopped: ${why}.`;
  const now = hosts.filter((each) => !["waiting", "done"].includes(each.state)).map((each) => `${each.host} (${each.state})`);
  return [`Maintenance is under way: ${had} of ${count(hosts.length, "host")} done`, now.join(", "), why && `it waits for ${why}`].filter(Boolean).join("; ") + ".";
}

const figures = (parts) => parts.filter(([there]) => there).map(([, said, bad]) => el("span", { class: bad ? "hurts" : null }, said));

/** The steps as a list of buttons, each of which leads to the scene after it. */
export function stepList(steps, go) {
  return el("ol", { class: "list steps-list", "aria-label": "Steps of the plan" }, steps.map((step, at) => el("li", {},
    el("button", { type: "button", class: "item", on: { click: () => go(at + 1) } },
      el("span", { class: "item-head" }, el("b", {}, `${at + 1}. ${step.title}`), el("small", {}, step.note)),
      step.moves.map((move) => el("span", { class: "move" }, move)),
      step.why))));
}

/** What is to be said of a repair beside its steps. */
export function repairNotes(answer) {
  const known = new Map(answer.leftFindings.map((each) => [each.id, each]));
  const stays = ({ finding, conflict, wouldHelp }) => el("li", {},
    known.has(finding) ? found(known.get(finding)) : finding,
    conflict.length > 0 && [el("b", {}, "Because"), el("ul", { class: "facts-list" }, conflict.map((each) => el("li", {}, each)))],
    wouldHelp.length > 0 && [el("b", {}, "Would help, each by itself"), el("ul", { class: "facts-list" }, wouldHelp.map((each) => el("li", {}, each)))]);
  return [
    part("What stays, and why", answer.unrepairable.map(stays)),
    part("New findings", answer.newFindings.map((each) => el("li", {}, found(each)))),
    part("Findings that end", answer.resolvedFindings.map((each) => el("li", {}, found(each)))),
    unjudged(answer),
  ];
}

/** What is to be said of a rolling maintenance beside its waves. */
export function maintenanceNotes(answer) {
  const cannot = ({ host, vms, why }) => el("li", {}, el("b", {}, host), el("span", { class: "message" }, [why, vms.join(", ")].filter(Boolean).join(": ")));
  return [
    part("Cannot be emptied", answer.blocked.map(cannot)),
    part("New findings after some wave", answer.newFindings.map((each) => el("li", {}, found(each)))),
    unjudged(answer),
  ];
}

const found = (finding) => [el("span", { class: "item-head" }, severityTag(finding.severity), el("span", { class: "rule" }, finding.rule)), el("span", { class: "message" }, finding.message)];

const part = (title, items) => items.length > 0 && [el("h3", {}, title), el("ul", { class: "list flat" }, items)];
