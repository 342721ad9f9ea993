// The plans that the page can try, as buttons, as questions to the worker, and as text: what a plan is called in the
// address is what the command line calls it (`fail host/esx-1`, `drain kni-worker`).

const NO_HA = " --no-ha";

export const PLANS = [
  { verb: "fail host/", kind: "host", button: "Simulate its failure", steps: (name) => [{ fail: `host/${name}` }], title: (name) => `host ${name} fails` },
  { verb: "fail host/", end: NO_HA, kind: "host", button: "Simulate its failure without HA", steps: (name) => [{ fail: `host/${name}` }], title: (name) => `host ${name} fails, and HA restarts nothing` },
  { verb: "maintain host/", kind: "host", button: "Simulate maintenance", steps: (name) => [{ maintain: `host/${name}` }], title: (name) => `host ${name} enters maintenance` },
  { verb: "drain ", kind: "node", button: "Simulate a drain", steps: (name) => [{ drain: name }], title: (name) => `node ${name} is drained` },
  { verb: "fail node/", kind: "node", button: "Simulate its failure", steps: (name) => [{ fail: `node/${name}` }], title: (name) => `node ${name} fails` },
];

/** The text of a plan, for the address. */
export const textOf = (plan, name) => `${plan.verb}${name}${plan.end ?? ""}`;

/** What the list of plans calls one. */
export const nameOf = (plan) => `${plan.verb.split(" ")[0]} ${plan.kind}${plan.end ? " without HA" : ""}`;

/** {plan, name} of a text; null where it is none. */
export function planOf(text) {
  const ends = (plan) => (plan.end ? text.endsWith(plan.end) : !text.endsWith(NO_HA));
  const plan = PLANS.find((each) => text.startsWith(each.verb) && ends(each));
  return plan ? { plan, name: text.slice(plan.verb.length, text.length - (plan.end ?? "").length) } : null;
}
