"""Whatever is wrong in an input, it ends in lines that name it, never in a traceback.

Each example is a random cluster with manifests in which one value has been replaced, or a byte overwritten. Where the
evaluator still answers, that is fine: unknown fields and harmless values are.
"""

import io
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import generate

from underhost.agents.evaluate.check import check
from underhost.agents.schedule.explain import explain
from underhost.agents.schedule.pending import schedule
from underhost.agents.site.snapshot import Options
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.errors import InputError
from underhost.streams.files.reader import load_files

Path = tuple[str | int, ...]
WRONG: tuple[Any, ...] = (
    None,
    5,
    -1,
    1.5,
    True,
    "",
    "x",
    [],
    {},
    [None],
    {"a": None},
    "a" * 100,
    2**70,
    [[]],
    {"": {}},
    "é",
)
LABELS = {"matchLabels": {"app": "m"}}
TEMPLATE = {
    "metadata": {"labels": {"app": "m"}},
    "spec": {
        "priorityClassName": "gold",
        "hostNetwork": True,
        "resources": {"limits": {"cpu": "1"}},
        "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 1}]}],
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": LABELS}
            | {"matchLabelKeys": ["app"]}
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["app"]}
                ]
            },
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}]
                }
            },
        },
    },
}
GUEST = {
    "domain": {
        "cpu": {"cores": 2},
        "memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}},
        "devices": {"gpus": [{"deviceName": "a/b"}]},
        "resources": {"requests": {"memory": "1Gi"}},
    },
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}],
}
MANIFESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("apps/v1", "Deployment", {"spec": {"replicas": 2, "selector": LABELS, "template": TEMPLATE}}),
    ("apps/v1", "StatefulSet", {"spec": {"replicas": 2, "selector": LABELS, "template": TEMPLATE}}),
    ("apps/v1", "DaemonSet", {"spec": {"selector": LABELS, "template": TEMPLATE}}),
    ("batch/v1", "Job", {"spec": {"template": TEMPLATE}, "status": {"conditions": [{"type": "X", "status": "True"}]}}),
    (
        "kubevirt.io/v1",
        "VirtualMachineInstanceReplicaSet",
        {
            "spec": {
                "replicas": 1,
                "selector": LABELS,
                "template": {"metadata": {"labels": {"app": "m"}}, "spec": GUEST},
            }
        },
    ),
    ("scheduling.k8s.io/v1", "PriorityClass", {"value": 5, "globalDefault": False}),
    ("policy/v1", "PodDisruptionBudget", {"spec": {"maxUnavailable": "50%", "selector": LABELS}}),
)


def a_cluster(seed: int) -> dict[str, Any]:
    document = generate.document(seed)
    for api_version, kind, fields in MANIFESTS:
        fields = json.loads(json.dumps(fields))
        document["items"].append({"apiVersion": api_version, "kind": kind, "metadata": {"name": "m"}, **fields})
    return document


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place inside the value."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def judged(text: bytes) -> None:
    """Everything that the offline commands do with an input."""
    site, _ = snapshot_of(load_files(["-"], stdin=io.BytesIO(text)))
    explain(site, Options())
    schedule(site, Options())
    check(site, Options(drift=True))


def assert_refused_in_lines_or_accepted(text: bytes) -> None:
    try:
        judged(text)
    except InputError as error:
        assert error.faults
        for line in error.faults:
            assert "\n" not in line
            assert len(line) < 600


@settings(max_examples=100, derandomize=True)
@given(st.integers(0, 2**31))
def test_a_wrong_value_anywhere_never_ends_in_a_traceback(seed: int) -> None:
    chance, document = Random(seed), a_cluster(seed)
    manifests = len(document["items"]) - len(MANIFESTS)
    inside = [path for path in places(document) if len(path) > 2]
    if chance.random() < 0.6:  # most values are those of pods; manifests shall have their share
        inside = [path for path in inside if int(path[1]) >= manifests]
    *way, last = chance.choice(inside)
    holder = document
    for step in way:
        holder = holder[step]  # type: ignore[index]
    holder[last] = chance.choice(WRONG)  # type: ignore[index]
    assert_refused_in_lines_or_accepted(json.dumps(document).encode())


@settings(max_examples=40, derandomize=True)
@given(st.integers(0, 2**31), st.integers(0, 255))
def test_an_overwritten_byte_never_ends_in_a_traceback(seed: int, byte: int) -> None:
    text = bytearray(json.dumps(a_cluster(seed)).encode())
    text[Random(seed).randrange(len(text))] = byte
    assert_refused_in_lines_or_accepted(bytes(text))


def test_the_cluster_itself_is_accepted() -> None:
    judged(json.dumps(a_cluster(1)).encode())
