"""The cheapest repair of a small site by another exact model: every moment of the plan at once, for CP-SAT.

In: a `Puzzle`. Out: what the best plan costs, and the moments of a plan that break something. Nothing of the product is
asked: what is broken is said anew here, from the puzzle's plain values.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ortools.sat.python import cp_model
from support.sites.movable import Puzzle, Replicas

from underhost.schemas.documents import RepairPlan

STEPS = 7
"""Moves that a plan may have."""


class Price(NamedTuple):
    """Findings left, evictions, vMotions, MiB moved: less is better, in this order."""

    left: int
    evictions: int
    vmotions: int
    memory: int


def cheapest(puzzle: Puzzle, plan: RepairPlan) -> Price:
    """What the best plan of at most `STEPS` vMotions costs.

    Pods are evicted where the vMotions of `plan` leave the VMs: none are made in order that a pod can be evicted.
    """
    lost = [app for app in puzzle.apps if app.misplaced is not None]
    at = {**puzzle.at, **{vm: host for wave in waves(plan) for vm, host in wave}}
    evictable = sum(_is_evictable(puzzle, app, at) for app in lost)
    left, vmotions, memory = _moves(puzzle, STEPS)
    return Price(left + len(lost) - evictable, evictable, vmotions, memory)


def _is_evictable(puzzle: Puzzle, app: Replicas, at: Mapping[str, str]) -> bool:
    """Whether the next pod of one on a wrong node has a place, and not beside the other, where they are apart now."""
    here, beside = (at[node] for node in app.nodes)
    return not app.fixed and any(here == beside or at[node] != beside for node in puzzle.ssd)


def price(plan: RepairPlan) -> Price:
    """What a plan of the product costs."""
    cost = plan.objective
    return Price(cost.findings_left, cost.evictions, cost.vmotions, cost.memory_mib)


def waves(plan: RepairPlan) -> list[list[tuple[str, str]]]:
    """Its vMotions as (VM, host), wave by wave."""
    steps = [step for step in plan.steps if step.vm is not None]
    numbers = sorted({step.wave for step in steps})
    return [[(step.vm or "", step.to.removeprefix("esx-")) for step in steps if step.wave == one] for one in numbers]


def may_be_on(puzzle: Puzzle, vm: str, host: str) -> bool:
    """Whether a VM may come to a host, whoever is there."""
    return host not in puzzle.closed and (vm, host) not in puzzle.blind and host in puzzle.bound.get(vm, puzzle.hosts)


def enemies(puzzle: Puzzle) -> set[frozenset[str]]:
    """Every two VMs that must not come together."""
    kept = {frozenset((one, other)) for _, one, other in puzzle.conflicts()} | set(puzzle.apart)
    return kept - puzzle.reconciled


def broken(puzzle: Puzzle, at: dict[str, str]) -> set[tuple[str, str]]:
    """(application, host) where replicas are together."""
    return {(app, at[one]) for app, one, other in puzzle.conflicts() if at[one] == at[other]}


def unsafe(puzzle: Puzzle, moves: Iterable[Sequence[tuple[str, str]]]) -> list[str]:
    """What is wrong with the moments of a plan: waves of (VM, host), carried out in any order within a wave."""
    at, wrong = dict(puzzle.at), []
    foes = enemies(puzzle)
    for number, wave in enumerate(moves, 1):
        arriving = dict(wave)
        if len(arriving) < len(wave):
            wrong.append(f"wave {number} moves a VM twice")
        for vm, host in wave:
            there = {other for other, place in at.items() if place == host} | {
                other for other, place in wave if place == host
            }
            there -= {vm}
            if vm in puzzle.pinned or not may_be_on(puzzle, vm, host) or at[vm] == host:
                wrong.append(f"wave {number}: {vm} may not come to {host}")
            if any(frozenset((vm, other)) in foes for other in there):
                wrong.append(f"wave {number}: {vm} meets another on {host}")
            if (
                puzzle.room[host]
                and puzzle.memory[vm] + sum(puzzle.memory[other] for other in there) > puzzle.room[host]
            ):
                wrong.append(f"wave {number}: no room for {vm} on {host}")
        at.update(arriving)
    return wrong


def can_end(puzzle: Puzzle, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether VMs can be anywhere so that of each pair one has left its host, and nothing that held is broken.

    Which moves lead there is not asked.
    """
    model, foes = cp_model.CpModel(), enemies(puzzle)
    vms = sorted(puzzle.at)
    at = {(vm, host): model.new_bool_var("") for vm in vms for host in puzzle.hosts}
    for vm in vms:
        model.add_exactly_one(at[vm, host] for host in puzzle.hosts)
    for (vm, host), here in at.items():
        if host == puzzle.at[vm]:
            continue
        if vm in puzzle.pinned or not may_be_on(puzzle, vm, host):
            model.add(here == 0)
        for other in vms:
            if frozenset((vm, other)) in foes and vm != other:
                model.add_implication(here, ~at[other, host])
        if puzzle.room[host]:
            load = sum(puzzle.memory[other] * at[other, host] for other in vms)
            model.add(load <= puzzle.room[host]).only_enforce_if(here)
    for one, other in pairs:
        model.add_bool_or(~at[one, puzzle.at[one]], ~at[other, puzzle.at[other]])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) == cp_model.OPTIMAL


def _moves(puzzle: Puzzle, steps: int) -> tuple[int, int, int]:
    """(findings left, vMotions, MiB) of the best plan of vMotions."""
    if not broken(puzzle, dict(puzzle.at)):
        return 0, 0, 0
    model, goes = cp_model.CpModel(), {}
    vms, foes = sorted(puzzle.at), enemies(puzzle)
    at = [{(vm, host): model.new_bool_var("") for vm in vms for host in puzzle.hosts} for _ in range(steps + 1)]
    for vm in vms:
        for host in puzzle.hosts:
            model.add(at[0][vm, host] == int(puzzle.at[vm] == host))
    for step in range(1, steps + 1):
        for vm in vms:
            model.add_exactly_one(at[step][vm, host] for host in puzzle.hosts)
            for host in puzzle.hosts:
                comes = goes[step, vm, host] = model.new_bool_var("")
                before, after = at[step - 1][vm, host], at[step][vm, host]
                model.add(after - before <= comes)
                model.add_implication(comes, after)
                model.add_implication(comes, ~before)
                if vm in puzzle.pinned or not may_be_on(puzzle, vm, host):
                    model.add(comes == 0)
                for other in vms:
                    if frozenset((vm, other)) in foes and vm != other:
                        model.add_implication(comes, ~at[step][other, host])
                if puzzle.room[host]:
                    load = sum(puzzle.memory[other] * at[step][other, host] for other in vms)
                    model.add(load <= puzzle.room[host]).only_enforce_if(comes)
        model.add_at_most_one(goes[step, vm, host] for vm in vms for host in puzzle.hosts)
    left: dict[tuple[str, str], Any] = {}
    for app, one, other in puzzle.conflicts():
        for host in puzzle.hosts:
            stays = left.setdefault((app, host), model.new_bool_var(""))
            model.add_bool_or(stays, ~at[steps][one, host], ~at[steps][other, host])
    found = []
    weights = {key: puzzle.memory[key[1]] for key in goes}
    for objective in (sum(left.values()), sum(goes.values()), sum(weights[key] * one for key, one in goes.items())):
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        model.minimize(objective)
        status = solver.solve(model)
        assert status == cp_model.OPTIMAL
        found.append(round(solver.objective_value))
        model.add(objective == found[-1])
    return found[0], found[1], found[2]
