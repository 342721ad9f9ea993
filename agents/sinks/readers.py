"""What who reads one namespace may be told of pods: the names of its own, and how many others there are.

In: pods as `namespace/name`. Out: those of the namespace, and a phrase for the rest. Events are read by namespace: no
tenant learns from them what others run, and where.
"""

from collections.abc import Iterable


def own_and_others(pods: Iterable[str], namespace: str) -> tuple[list[str], str]:
    """The pods of the namespace, and the others as `2 pods of other namespaces`; "" where there are none."""
    pods = list(pods)
    own = [pod for pod in pods if pod.partition("/")[0] == namespace]
    others = len(pods) - len(own)
    if others == 1:
        return own, "1 pod of another namespace"
    return own, f"{others} pods of other namespaces" if others else ""
