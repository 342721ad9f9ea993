// Colours of workloads: six hues that colour-blind people can tell apart (after Okabe and Ito), each in four patterns.
// Red is kept for findings. A workload keeps its slot as long as the page is open; which one is decided by its name.

export const HUES = 6;
export const PATTERNS = 4;

function hash(text) {
  let value = 2166136261;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 16777619);
  return value >>> 0;
}

/** What tells a workload from others: its namespace, kind and name. "" for a pod of its own. */
export function workloadKey(pod) {
  return pod.workload ? `${pod.name.slice(0, pod.name.indexOf("/"))}|${pod.workload}` : "";
}

export class Palette {
  #slots = new Map();
  #taken = new Set();

  /** The slot of a pod: `hue` is -1 for what belongs to its node (grey), -2 for a pod of its own. */
  of(pod) {
    if (pod.pinned) return { hue: -1, pattern: 0, order: 9999 };
    const key = workloadKey(pod);
    if (!key) return { hue: -2, pattern: 0, order: 9998 };
    let slot = this.#slots.get(key);
    if (slot === undefined) {
      slot = this.#free(hash(key));
      this.#slots.set(key, slot);
      this.#taken.add(slot);
    }
    return { hue: slot % HUES, pattern: Math.floor(slot / HUES) % PATTERNS, order: slot };
  }

  #free(start) {
    for (let pattern = 0; pattern < PATTERNS; pattern += 1) {
      for (let step = 0; step < HUES; step += 1) {
        const slot = pattern * HUES + ((start + step) % HUES);
        if (!this.#taken.has(slot)) return slot;
      }
    }
    return start % (HUES * PATTERNS);
  }
}

export const slotClass = ({ hue, pattern }) => (hue === -1 ? "pinned" : hue === -2 ? "bare" : `h${hue} p${pattern}`);
