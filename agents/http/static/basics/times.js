// Moments as a person reads them: in the time zone of the browser, with the zone, and exactly where one points at them.

import { el } from "./text.js";

const DAY = 86_400_000;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const full = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});
const all = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
  fractionalSecondDigits: 3, timeZoneName: "short",
});

const STEPS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "d"]];

/** How long ago a moment was, in a few characters. */
export function ago(moment, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(moment)) / 1000));
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 3) return "now";
  const [, unit, name] = STEPS.find(([limit]) => seconds < limit);
  return `${Math.floor(seconds / unit)} ${name} ago`;
}

/** Day, time and zone, to the second. */
export const inFull = (moment) => full.format(new Date(moment));

/** To the millisecond, in the browser's zone and as the topics have it. */
export const exactly = (moment) => `${all.format(new Date(moment))} = ${new Date(moment).toISOString()}`;

function brief(moment, now) {
  const at = new Date(moment);
  if (Number.isNaN(at.getTime())) return "";
  const when = now - at < DAY ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
  return `${when} · ${ago(moment, now)}`;
}

/** A `<time>` that `tick` keeps up to date. */
export function timeOf(moment) {
  const known = !Number.isNaN(Date.parse(moment));
  return el("time", { datetime: moment, title: known ? exactly(moment) : null }, brief(moment, Date.now()));
}

export function tick(root) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time")) {
    const text = brief(element.dateTime, now);
    if (element.textContent !== text) element.textContent = text;
  }
}
