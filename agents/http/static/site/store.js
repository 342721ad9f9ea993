// What is known of one site, now or at a moment of the past: hosts, nodes, pods, findings, and who is on whom. Changed by
// documents and events of the API; whoever shows it listens for `change`, which names the nodes that look other than before,
// and for `pieces`, which names those whose pods were not here, and nothing else is other.

import { rankOf } from "../basics/severities.js";
import { namespaceOf } from "../basics/text.js";

const RESOLVED_KEPT = 20;
const NONE = Object.freeze([]);

function worse(one, other) {
  return !one || rankOf(other) < rankOf(one) ? other : one;
}

export class Store extends EventTarget {
  hosts = new Map();
  nodes = new Map();
  pods = new Map();
  findings = new Map();
  resolved = [];
  vsphere = false;
  moment = null; // of the past, as RFC 3339; null: now
  #leftOut = [];
  #unheard = null;
  loaded = false;
  #totals = null; // of a site whose pods are not all here; null: they are
  #counts = new Map();
  #here = new Set(); // the nodes whose pods are here, of such a site
  #heard = new Set(); // pods that were heard of while a piece was on its way: it may be older
  #asking = 0;
  #podsOn = new Map();
  #nodesOn = new Map();
  #about = { pod: new Map(), node: new Map(), host: new Map() };

  // ------------------------------------------------------------------------------------------------ who is on whom
  podsOn(node) {
    return this.#podsOn.get(node) ?? NONE;
  }

  nodesOn(host) {
    return this.#nodesOn.get(host) ?? NONE;
  }

  /** Whether all pods are here: of a large site only some are, until somebody wants more (`pieces.js`). */
  get whole() {
    return this.#totals === null;
  }

  /** Whether the pods of this node are still to come. */
  lacks(node) {
    return !this.whole && !this.#here.has(node);
  }

  /** How many pods the site has; on a node; that do not belong to their node. */
  get size() {
    return this.whole ? this.pods.size : this.#totals.placed + this.podsOn("").length;
  }

  numberOn(node) {
    return this.whole ? this.podsOn(node).length : this.#counts.get(node) ?? 0;
  }

  get own() {
    if (!this.whole) return this.#totals.own;
    let own = 0;
    for (const pod of this.pods.values()) if (!pod.pinned) own += 1;
    return own;
  }

  /** How many workloads there are, where their pods are not all here. */
  get workloads() {
    return this.#totals.workloads;
  }

  /** What the findings say nothing about, each with its reason. */
  get notJudged() {
    return this.#unheard ? [this.#unheard, ...this.#leftOut] : this.#leftOut;
  }

  /** Nothing is heard any more, for this reason: what is shown is of `moment`. "" once it is heard again. */
  silent(why, moment = "") {
    const before = this.#unheard?.why ?? "";
    if (before === why) return;
    this.#unheard = why ? { what: this.#unheard?.what ?? `what changes since ${moment}`, why } : null;
    if (this.loaded) this.#tell(new Set());
  }

  /** Whether all is well: nothing is wrong, and nothing was left out when that was judged. */
  get clear() {
    return this.loaded && !this.findings.size && !this.notJudged.length;
  }

  hostOf(pod) {
    return this.hosts.get(this.nodes.get(pod.node)?.host);
  }

  waiting() {
    return [...this.podsOn("")];
  }

  /** The findings about something: `kind` is pod, node or host. */
  about(kind, id) {
    return this.#about[kind].get(id) ?? NONE;
  }

  severity(kind, id) {
    let worst = "";
    for (const finding of this.about(kind, id)) worst = worse(worst, finding.severity);
    return worst;
  }

  /** Everything that a finding is about: names of pods and nodes, ids of hosts. */
  involved(finding) {
    const pods = new Set([finding.pod, ...(finding.peers ?? NONE)].filter(Boolean));
    const nodes = new Set();
    for (const name of pods) if (this.pods.get(name)?.node) nodes.add(this.pods.get(name).node);
    if (!pods.size && finding.node) nodes.add(finding.node);
    const hosts = new Set();
    for (const name of nodes) if (this.nodes.get(name)?.host) hosts.add(this.nodes.get(name).host);
    return { pods, nodes, hosts };
  }

  // ---------------------------------------------------------------------------------------------------- what comes
  /** Findings that ended before the page was opened, the newest first, as `/api/v1/history` has them. */
  remember(events) {
    const known = new Set([...this.resolved.map((each) => each.id), ...this.findings.keys()]);
    const older = events.filter((each) => !known.has(each.id)).map((each) => ({ ...each, resolvedAt: each.updatedAt }));
    if (!older.length) return;
    this.resolved = [...this.resolved, ...older].sort((a, b) => (a.resolvedAt < b.resolvedAt ? 1 : -1)).slice(0, RESOLVED_KEPT);
    this.#tell(new Set());
  }

  /** The id of a host that is named by its id or its name. */
  hostNamed(text) {
    return this.hosts.has(text) ? text : [...this.hosts.values()].find((host) => host.name === text)?.id ?? text;
  }

  /** Start anew from whole documents. */
  load(map, findings, notJudged = []) {
    this.hosts = new Map(map.hosts.map((host) => [host.id, host]));
    this.nodes = new Map(map.nodes.map((node) => [node.name, node]));
    this.pods = new Map(map.pods.map((pod) => [pod.name, { ...POD, ...pod }]));
    this.findings = new Map(findings.map((finding) => [finding.id, finding]));
    this.vsphere = map.vsphere;
    const waiting = map.pods.filter((pod) => !pod.node).length;
    this.#totals = map.totals ? { ...map.totals, placed: map.totals.pods - waiting } : null;
    this.#counts = new Map(map.totals ? map.nodes.map((node) => [node.name, node.pods ?? 0]) : []);
    this.#here = new Set();
    this.#leftOut = notJudged;
    this.loaded = true;
    this.#index();
    this.#reindexFindings();
    this.#tell(null);
  }

  /**
   * Take in pods that were not here, as `ask()` gets them ({pods}): those of these nodes, null for all that there are.
   * What is heard meanwhile is newer. Where they cannot be had, things stay as they are.
   */
  async take(nodes, ask) {
    this.#asking += 1;
    const here = this.pods; // another one, once everything was read anew
    const found = await ask().catch(() => null);
    this.#asking -= 1;
    if (found && here === this.pods) {
      for (const pod of found.pods) if (!this.#heard.has(pod.name)) this.pods.set(pod.name, { ...POD, ...pod });
      if (nodes === null) this.#totals = null;
      else for (const name of nodes) this.#here.add(name);
    }
    if (!this.#asking) this.#heard.clear();
    if (!found || here !== this.pods) return false;
    this.#index();
    if (nodes === null) this.#tell(null);
    else this.dispatchEvent(new CustomEvent("pieces", { detail: { nodes: new Set(nodes) } }));
    return true;
  }

  /** Apply an event `change`. */
  apply(change) {
    const touched = new Set();
    const touch = (pod) => {
      touched.add(this.pods.get(pod)?.node ?? "");
      if (this.#asking) this.#heard.add(pod);
    };
    this.#count(change.counts ?? {}, touched);
    for (const id of change.goneHosts ?? NONE) this.hosts.delete(id);
    for (const host of change.hosts ?? NONE) this.hosts.set(host.id, host);
    for (const name of change.goneNodes ?? NONE) this.nodes.delete(name);
    for (const node of change.nodes ?? NONE) {
      this.nodes.set(node.name, node);
      touched.add(node.name);
    }
    for (const name of change.gonePods ?? NONE) {
      touch(name);
      this.pods.delete(name);
    }
    for (const pod of change.pods ?? NONE) {
      touch(pod.name);
      this.pods.set(pod.name, { ...POD, ...pod });
      touch(pod.name);
    }
    this.#leftOut = change.notJudged ?? this.#leftOut;
    const structural = Boolean(change.nodes || change.goneNodes || change.hosts || change.goneHosts);
    if (structural || change.pods || change.gonePods) this.#index();
    const told = this.#applyFindings(change, touched);
    this.#tell(touched, told);
  }

  #count(counts, touched) {
    if (this.whole) return;
    for (const [node, number] of Object.entries(counts)) {
      this.#totals.placed += number - (this.#counts.get(node) ?? 0);
      this.#counts.set(node, number);
      touched.add(node);
    }
  }

  #applyFindings(change, touched) {
    const mark = () => {
      for (const name of this.#about.node.keys()) touched.add(name);
      for (const name of this.#about.pod.keys()) touched.add(this.pods.get(name)?.node ?? "");
    };
    mark();
    const [opened, ended] = [[], []];
    for (const id of change.goneFindings ?? NONE) {
      const finding = this.findings.get(id);
      this.findings.delete(id);
      if (finding) ended.push({ ...finding, resolvedAt: new Date().toISOString(), died: this.#hasDied(finding) });
    }
    this.resolved.unshift(...ended);
    this.resolved.length = Math.min(this.resolved.length, RESOLVED_KEPT);
    for (const finding of change.findings ?? NONE) {
      if (!this.findings.has(finding.id)) opened.push(finding);
      this.findings.set(finding.id, finding);
      this.resolved = this.resolved.filter((each) => each.id !== finding.id);
    }
    this.#reindexFindings();
    mark();
    return { opened, ended };
  }

  /** Whether a finding has ended only because what it was about is not there any more. */
  #hasDied({ pod, peers, node }) {
    const pods = [pod, ...(peers ?? NONE)].filter(Boolean);
    if (!pods.length) return Boolean(node) && !this.nodes.has(node);
    return pods.filter((name) => this.pods.has(name)).length < Math.min(2, pods.length);
  }

  #index() {
    this.#podsOn = new Map();
    this.#nodesOn = new Map();
    for (const pod of this.pods.values()) push(this.#podsOn, pod.node, pod);
    for (const node of this.nodes.values()) push(this.#nodesOn, this.hosts.has(node.host) ? node.host : "", node);
  }

  #reindexFindings() {
    this.#about = { pod: new Map(), node: new Map(), host: new Map() };
    for (const finding of this.findings.values()) {
      const { pods, nodes, hosts } = this.involved(finding);
      for (const name of pods) push(this.#about.pod, name, finding);
      for (const name of nodes) push(this.#about.node, name, finding);
      for (const id of hosts) push(this.#about.host, id, finding);
    }
  }

  #tell(nodes, { opened = NONE, ended = NONE } = {}) {
    this.dispatchEvent(new CustomEvent("change", { detail: { nodes, opened, ended } }));
  }

  // --------------------------------------------------------------------------------------------------------- asking
  namespaces() {
    const found = new Set();
    for (const finding of this.findings.values()) if (finding.pod) found.add(namespaceOf(finding.pod));
    return [...found].sort();
  }

  /** Keys by which hosts can be grouped: their cluster, and labels of them and of their nodes with several values. */
  groupings() {
    const values = new Map();
    const add = (key, value) => values.set(key, (values.get(key) ?? new Set()).add(value));
    for (const host of this.hosts.values()) {
      if (host.cluster) add("cluster", host.cluster);
      for (const [key, value] of Object.entries(host.labels ?? {})) add(key, value);
    }
    for (const node of this.nodes.values()) {
      for (const [key, value] of Object.entries(node.labels ?? {})) add(key, value);
    }
    return [...values].filter(([, each]) => each.size > 1).map(([key]) => key).sort();
  }
}

const POD = { node: "", workload: "", phase: "Running", ready: true, leaving: false, pinned: false };

function push(map, key, value) {
  const held = map.get(key);
  if (held) held.push(value);
  else map.set(key, [value]);
}
