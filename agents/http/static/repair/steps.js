// A plan as steps: what each moves, why, and the scene once it and those before it are done. The steps of a repair are its
// moves, those of a rolling maintenance its waves.

import { severityTag } from "../basics/severities.js";
import { count, el, shortNames } from "../basics/text.js";
import { outcomeOf } from "../whatif/outcome.js";

const LISTED = 60; // moves of one wave, or hosts, that are written out
const KINDS = { vmotion: "vMotion", evict: "Eviction", "drs-rule": "DRS rule" };

/** The steps of a RepairPlan. */
export function repairSteps(store, answer) {
  const known = new Map([...store.findings.values(), ...answer.resolvedFindings, ...answer.leftFindings].map((each) => [each.id, each]));
  const last = new Map(); // a finding has ended once the last step that is for it is done
  answer.steps.forEach((step, at) => step.because.forEach((id) => last.set(id, at + 1)));
  const whole = answer.steps.length;
  return {
    opening: whole,
    all: answer.steps.map((step) => ({
      title: `${KINDS[step.kind] ?? step.kind} of ${step.vm ?? step.pod}`,
      note: `wave ${step.wave}`,
      moves: [`${step.from} → ${step.to}`],
      why: step.because.map((id) => reason(id, known.get(id), store)),
      about: step.vm ? { kind: "node", id: nodeOf(store, step.vm) } : { kind: "pod", id: step.pod },
    })),
    sceneAt(number) {
      const done = answer.steps.slice(0, number);
      return outcomeOf(store, [], {
        vmMoves: done.filter((step) => step.vm),
        moves: done.filter((step) => step.pod),
        pending: {},
        resolvedFindings: answer.resolvedFindings.filter((each) => number >= (last.get(each.id) ?? whole)),
        newFindings: number === whole ? answer.newFindings : [],
        notJudged: answer.notJudged,
      });
    },
  };
}

/** The steps of a MaintenancePlan. What is new after a wave is told in words: the answer does not say after which. */
export function maintenanceSteps(store, answer) {
  return {
    opening: Math.min(1, answer.waves.length),
    all: answer.waves.map((wave) => ({
      title: `Maintenance of ${listed(wave.hosts)}`,
      note: `wave ${wave.wave}, ${count(wave.vmMoves.length, "VM")} ${wave.vmMoves.length === 1 ? "moves" : "move"}`,
      moves: some(wave.vmMoves.map((move) => `${move.vm}: ${move.from} → ${move.to}`)),
      why: [],
      about: { kind: "host", id: store.hostNamed(wave.hosts[0]) },
    })),
    sceneAt(number) {
      const done = answer.waves.slice(0, number);
      const away = (done.at(-1)?.hosts ?? []).map((name) => ({ maintain: `host/${name}` }));
      const vmMoves = done.flatMap((wave) => wave.vmMoves);
      return outcomeOf(store, away, { vmMoves, moves: [], pending: {}, resolvedFindings: [], newFindings: [], notJudged: answer.notJudged });
    },
  };
}

function reason(id, finding, store) {
  if (!finding) return el("span", { class: "message" }, `for finding ${id}`);
  const pods = [finding.pod, ...(finding.peers ?? [])].filter(Boolean);
  const about = pods.length ? shortNames(pods.map((name) => store.pods.get(name) ?? { name })) : (finding.node ?? finding.object ?? "");
  return el("span", { class: "because" }, severityTag(finding.severity), el("span", {}, `${finding.rule}: ${about}`));
}

const nodeOf = (store, vm) => [...store.nodes.values()].find((node) => (node.vm || node.name) === vm)?.name ?? vm;

function some(lines) {
  return lines.length > LISTED ? [...lines.slice(0, LISTED), `and ${lines.length - LISTED} more`] : lines;
}

const listed = (names) => some(names).join(", ");
