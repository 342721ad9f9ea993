"""Of a pod's volumes only what the rules read leaves the API."""

import json
from typing import Any

import pytest
from support.build import a_pod

from underhost.schemas.kubernetes import encode
from underhost.schemas.pods.volumes import trimmed
from underhost.streams.kubernetes.kinds import KINDS

PASSWORD = "hunter2"
TOKEN = {"name": "kube-api-access-x7k2p", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
INLINE = {"name": "data", "csi": {"driver": "smb", "volumeAttributes": {"password": PASSWORD}}}
CLAIM = {"name": "db", "persistentVolumeClaim": {"claimName": "db-0", "readOnly": True}}
EPHEMERAL = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"p": PASSWORD}}}}}
FLEX = {"name": "f", "flexVolume": {"driver": "cifs", "options": {"password": PASSWORD}}}
RBD = {"name": "r", "rbd": {"monitors": ["a"], "image": "i", "pool": "p", "user": "admin", "keyring": PASSWORD}}


@pytest.mark.parametrize(
    ("volumes", "left"),
    [
        pytest.param([TOKEN], None, id="a token, which every pod has"),
        pytest.param([INLINE], None, id="inline CSI"),
        pytest.param([FLEX, {"name": "h", "hostPath": {"path": "/etc"}}], None, id="what no rule reads"),
        pytest.param([CLAIM, TOKEN], [{"persistentVolumeClaim": {"claimName": "db-0"}}], id="a claim"),
        pytest.param([EPHEMERAL], [{"name": "scratch", "ephemeral": {}}], id="an ephemeral claim keeps its name"),
        pytest.param([{"name": "tmp", "emptyDir": {"medium": "Memory"}}], [{"emptyDir": {}}], id="an emptyDir"),
        pytest.param([RBD], [{"rbd": {"monitors": ["a"], "pool": "p", "image": "i"}}], id="a disk"),
        pytest.param([{"name": "m", "image": {"reference": "r:1"}}], [{"image": {"reference": "r:1"}}], id="an image"),
    ],
)
def test_only_what_is_read_of_a_volume_is_published(volumes: list[Any], left: list[Any] | None) -> None:
    [kind] = [kind for kind in KINDS if kind.kind == "Pod"]
    record = encode(kind.decode(json.dumps(a_pod("db-0").spec(volumes=volumes).json()).encode()))
    assert json.loads(record).get("spec", {}).get("volumes") == left
    assert PASSWORD not in record.decode()


def test_what_is_trimmed_already_stays_as_it_is() -> None:
    once = trimmed(a_pod("db-0").spec(volumes=[CLAIM, EPHEMERAL, RBD]).build())
    assert trimmed(once) == once
