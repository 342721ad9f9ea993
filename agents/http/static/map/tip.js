// What is pointed at, in a few lines beside it.

import { classesOf, severityIcon } from "../basics/severities.js";
import { el, fill } from "../basics/text.js";
import { podLabel, stateOf } from "./pods.js";

export class Tip {
  constructor(root) {
    this.root = root;
  }

  hide() {
    this.root.hidden = true;
  }

  /** Tell of an item of a scene, beside its element or the pointer; a host or node says for itself what it is. */
  show(scene, item, element, event) {
    const pod = item?.kind === "pod" ? scene.pods.get(item.id) : undefined;
    if (!pod) return this.hide();
    const wrong = scene.about("pod", pod.name);
    fill(
      this.root,
      el("b", {}, pod.name),
      el("span", {}, `${pod.workload || "no workload"} · ${stateOf(pod)}`),
      el("span", {}, [pod.node, scene.hostOf(pod)?.name].filter(Boolean).join(" on ") || "waits for a node"),
      wrong.map((finding) => el("span", { class: classesOf(finding.severity) }, severityIcon(finding.severity), finding.reason)),
    );
    this.root.setAttribute("aria-label", podLabel(pod, wrong));
    this.root.hidden = false;
    const box = element.getBoundingClientRect();
    const x = event ? event.clientX + 14 : box.right + 8;
    const y = event ? event.clientY + 16 : box.top;
    const [width, height] = [this.root.offsetWidth, this.root.offsetHeight];
    this.root.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`;
    this.root.style.top = `${y + height > innerHeight - 8 ? Math.max(8, y - height - 32) : y}px`;
  }
}
