// Text that cannot harm: names come from clusters whose tenants choose them. Everything that is shown goes through here,
// as text and never as markup, without characters that hide or reorder what stands around them.

const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function clean(value) {
  return String(value ?? "").replace(HIDDEN, "\ufffd");
}

/** An element. Attributes whose value is null or false are left out; strings among the children become text. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else element.setAttribute(name, value === true ? "" : clean(value));
  }
  fill(element, ...children);
  return element;
}

/** Put these children in the place of what the element holds. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child != null && child !== false)
      .map((child) => (child instanceof Node ? child : document.createTextNode(clean(child)))),
  );
  return element;
}

/** `fill` with what `make()` gives, where the focus may be inside: it is on what has the same `data-key` then. */
export function refill(element, make) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  fill(element, make()); // which may take away what has the focus
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  return element;
}

/** A number as the whole page writes it: 12,345. */
export const written = (number) => number.toLocaleString("en");

export function count(number, what) {
  return `${written(number)} ${what}${number === 1 ? "" : what.endsWith("s") ? "es" : "s"}`;
}

const collator = new Intl.Collator("en", { numeric: true });
export const natural = (one, other) => collator.compare(one, other);

const HASH = /-[a-z0-9]{6,10}$/;

/** A workload's name without its kind; of a ReplicaSet without the hash of its template. */
export function workloadName(workload) {
  const at = workload.indexOf("/");
  const name = workload.slice(at + 1);
  return workload.startsWith("ReplicaSet/") ? name.replace(HASH, "") : name;
}

/** A pod's name in two parts: its workload (or all of it), and the end that tells it from its replicas. */
export function shortName(pod) {
  const name = pod.name.slice(pod.name.indexOf("/") + 1);
  const workload = pod.workload ? workloadName(pod.workload) : "";
  if (!workload || !name.includes(workload.slice(0, 40))) return [name, ""];
  return [workload, name.slice(name.lastIndexOf("-") + 1)];
}

/** Pods in a few words: `db 0 and 1, web x7f2p`, at most `most` of them by name. */
export function shortNames(pods, most = 3) {
  const by = new Map();
  for (const pod of pods.slice(0, most)) {
    const [label, tail] = shortName(pod);
    by.set(label, [...(by.get(label) ?? []), tail].filter(Boolean));
  }
  const rest = pods.length > most ? ` and ${pods.length - most} more` : "";
  return [...by].map(([label, tails]) => `${label} ${listed(tails)}`.trim()).join(", ") + rest;
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

export const namespaceOf = (pod) => pod.slice(0, pod.indexOf("/"));

/** What the findings of a scene say nothing about, in one sentence; "" where all was judged. */
export function leftOut({ notJudged }) {
  const grouped = (what) => what.replace(/\d{4,}(?= [a-z]+s\b)/g, (count) => written(Number(count)));
  return notJudged.length ? clean(`Not judged: ${notJudged.map(({ what, why }) => `${grouped(what)} (${why})`).join(", ")}`) : "";
}

/** The same as a note beside a plan; null where all was judged. */
export function unjudged(answer) {
  const said = leftOut(answer);
  return said ? el("p", { class: "note doubt" }, said) : null;
}
