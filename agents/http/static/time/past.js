// The past of a site, worked out by the worker from the topics: how far back they reach and when findings opened and
// ended (`/api/v1/history`), and the map and the findings of a moment (`at=`, RFC 3339, of both).

import { getJson } from "../worker/api.js";
import { Store } from "../site/store.js";

/** How far the past reaches: {from, to, marks, resolved}; null where it cannot be told. */
export async function reachOf(site) {
  const path = `/api/v1/history?site=${encodeURIComponent(site)}`;
  const range = await getJson(path, { asks: true, quiet: true }).catch(() => null);
  return range?.from && range.to ? { marks: [], resolved: [], ...range } : null;
}

/** The site as it was at a moment, as a scene. Throws an Error that says why it cannot be told. */
export async function sceneAt(site, moment) {
  const query = `site=${encodeURIComponent(site)}&at=${encodeURIComponent(moment)}`;
  const asked = ["map", "findings"].map((what) => getJson(`/api/v1/${what}?${query}`, { asks: true }));
  const [map, findings] = await Promise.all(asked);
  const scene = new Store();
  scene.moment = map.version; // as RFC 3339, also where `10m` was asked for
  scene.load(map, findings.findings, findings.notJudged);
  return scene;
}
