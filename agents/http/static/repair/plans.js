// The plans of the tab Repair, as questions to the worker and as text: in the address a plan is called as the command line
// calls it (`repair --no-evictions`, `maintain --cluster C0`).

const CLUSTER = "maintain --cluster ";

export const REPAIR = "repair";
export const WITHOUT_EVICTIONS = "repair --no-evictions";
export const ALL_HOSTS = "maintain --all-hosts";
export const ofCluster = (name) => `${CLUSTER}${name}`;

/** {path, body, busy} of a text; null where it is none of these plans. */
export function planOf(text) {
  if (text === REPAIR) return { path: "repair", body: {}, busy: "Planning a repair…" };
  if (text === WITHOUT_EVICTIONS) return { path: "repair", body: { evictions: false }, busy: "Planning a repair without evictions…" };
  if (text === ALL_HOSTS) return { path: "maintain", body: { allHosts: true }, busy: "Planning maintenance of all hosts…" };
  if (text.startsWith(CLUSTER)) {
    const name = text.slice(CLUSTER.length);
    return { path: "maintain", body: { clusters: [name] }, busy: `Planning maintenance of ${name}…` };
  }
  return null;
}
