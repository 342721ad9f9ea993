"""Leases on a real API server: of two writes at once one is a conflict, and a missing right is named."""

from collections.abc import AsyncIterator

import pytest
from support.processes.kube import NOBODY_TOKEN, Kube

from underhost.schemas.errors import Conflict, Refused, Unreachable
from underhost.streams.kubernetes.client import connect
from underhost.streams.kubernetes.leases import Lease, Leases, moment
from underhost.streams.settings.clusters import KubernetesSettings

pytestmark = pytest.mark.real

NAME = "underhost-prod-labeller"
MINE = Lease("a", 7, 15, moment())


@pytest.fixture
async def leases(kube: Kube) -> AsyncIterator[Leases]:
    async with await connect(KubernetesSettings(kubeconfig=kube.kubeconfig)) as client:
        yield Leases(client, "default", deadline=30)


async def test_a_lease_is_created_renewed_given_back_and_taken(leases: Leases) -> None:
    assert await leases.get(NAME) is None
    made = await leases.put(NAME, MINE)
    assert made == MINE._replace(version=made.version)
    assert await leases.get(NAME) == made
    renewed = await leases.put(NAME, made)
    assert renewed.version != made.version
    empty = await leases.put(NAME, renewed._replace(holder="", acquired=""))
    assert (empty.holder, empty.term, empty.acquired) == ("", 7, "")
    assert (await leases.put(NAME, empty._replace(holder="b", term=8)))[:2] == ("b", 8)


async def test_of_two_writes_at_once_one_is_a_conflict(leases: Leases) -> None:
    made = await leases.put("two", MINE)
    with pytest.raises(Conflict):
        await leases.put("two", MINE)
    await leases.put("two", made)
    with pytest.raises(Conflict):
        await leases.put("two", made)


async def test_a_lease_that_somebody_has_deleted_is_there_again_when_it_is_renewed(leases: Leases) -> None:
    made = await leases.put("deleted", MINE)
    await leases._call("DELETE", f"{leases._folder}/deleted")
    assert await leases.get("deleted") is None
    again = await leases.put("deleted", made)
    assert again == made._replace(version=again.version)


async def test_a_missing_right_is_named_in_one_line(kube: Kube) -> None:
    async with await connect(KubernetesSettings(kubeconfig=kube.kubeconfig_of(NOBODY_TOKEN))) as client:
        with pytest.raises(Refused, match=f'"{NAME}" is forbidden.* cannot get resource "leases" .*\\(403\\)'):
            await Leases(client, "default", deadline=30).get(NAME)


async def test_a_call_ends_by_its_deadline(leases: Leases, kube: Kube) -> None:
    async with await connect(KubernetesSettings(kubeconfig=kube.kubeconfig)) as client:
        with pytest.raises(Unreachable, match="no answer within 0 s"):
            await Leases(client, "default", deadline=0).get(NAME)
