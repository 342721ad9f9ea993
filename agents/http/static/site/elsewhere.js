// A link to a finding names no site: on a page of several, the finding may be another one's.

import { getJson } from "../worker/api.js";

/** The first of these sites in which a finding is open; "" where none is. */
export async function siteOf(finding, sites) {
  for (const site of sites) {
    const found = await getJson(`/api/v1/findings?site=${encodeURIComponent(site)}`, { quiet: true }).catch(() => null);
    if (found?.findings.some((each) => each.id === finding)) return site;
  }
  return "";
}
