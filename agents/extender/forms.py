"""What kube-scheduler sends to its extender, and what it takes: the two forms of questions and answers.

In: the structs of `schemas/extender.py`. Out: names of nodes, victims, scores, results. Pure.
"""

from itertools import compress

import msgspec
import numpy as np

from underhost.agents.compiled.domains import IndexArray
from underhost.agents.extender.judge import REFUSALS
from underhost.schemas import extender as wire
from underhost.schemas.errors import InputError


def names_of(args: wire.ExtenderArgs) -> list[str]:
    """The nodes that a question is about. Raises InputError."""
    if args.node_names is not None:
        return args.node_names
    if args.nodes is None:
        raise InputError("NodeNames (nodeCacheCapable) or Nodes is expected")
    try:
        return [msgspec.json.decode(item, type=wire.NamedNode).metadata.name for item in args.nodes.items or ()]
    except msgspec.MsgspecError as error:
        raise InputError(f"Nodes: {error}") from error


def victims_of(args: wire.ExtenderPreemptionArgs) -> dict[str, wire.MetaVictims]:
    """The victims by node, each by its uid. Raises InputError."""
    if args.node_name_to_meta_victims is not None:
        return args.node_name_to_meta_victims
    if args.node_name_to_victims is None:
        raise InputError("NodeNameToMetaVictims (nodeCacheCapable) or NodeNameToVictims is expected")
    return {
        node: wire.MetaVictims([wire.MetaPod(pod.metadata.uid) for pod in one.pods or ()], one.num_pdb_violations)
        for node, one in args.node_name_to_victims.items()
    }


def scores_of(weighed: IndexArray) -> IndexArray:
    """10 for the least, 0 for the most, in proportion between them; what has more than the least never gets 10."""
    if not len(weighed):
        return weighed
    most, least = int(weighed.max()), int(weighed.min())
    if most == least:
        return np.full(len(weighed), wire.MOST, np.intp)
    found: IndexArray = wire.MOST * (most - weighed) // (most - least)
    return found


def result_of(args: wire.ExtenderArgs, names: list[str], codes: IndexArray) -> wire.ExtenderFilterResult:
    """By the code of each node, in the form of the question. Upstream takes what is in both maps for unresolvable."""
    good = (codes == 0).tolist()
    refused = {names[at]: int(codes[at]) for at in np.flatnonzero(codes).tolist()}
    failed = {name: REFUSALS[code].reason for name, code in refused.items()}
    unresolvable = {name: reason for name, reason in failed.items() if not REFUSALS[refused[name]].resolvable}
    if args.node_names is not None:
        left = names if not refused else list(compress(names, good))
        return wire.ExtenderFilterResult(
            node_names=left, failed_nodes=failed, failed_and_unresolvable_nodes=unresolvable
        )
    items = list(compress(args.nodes.items or (), good)) if args.nodes is not None else []
    return wire.ExtenderFilterResult(
        nodes=wire.NodeList(items), failed_nodes=failed, failed_and_unresolvable_nodes=unresolvable
    )
