"""The pods that the binder is placing, as a running pipeline knows them: from the decision until the rows show them."""

from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster
from support.workers.pipeline import running, settings_in

from underhost.agents import worker as worker_module
from underhost.agents.pipeline.dispatch.in_flight import MANY, BindingsInFlight
from underhost.agents.pipeline.run import Pipeline
from underhost.schemas.errors import Refused, Unreachable
from underhost.schemas.records import Placement
from underhost.schemas.topics import OUTCOMES, PLACEMENTS


async def test_a_pipeline_knows_which_of_its_pods_are_on_their_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Pipeline] = []

    class Kept(Pipeline):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(worker_module, "Pipeline", Kept)
    cluster = FakeCluster()
    for number in (1, 2, 3):
        cluster.node(f"n{number}", f"h{number}")
    for name in ("gone", "late", "soon"):
        cluster.pod(name)
    cluster.refuses = {"gone": [Refused("no")] * 9, "late": [Unreachable("no answer")] * 9}
    async with running(settings_in(tmp_path), cluster) as worker:
        seen = list[dict[str, str | None]]()

        def answered() -> bool:
            on_their_way = made[0].placing("default") if made else {}
            seen.append({pod: row.node for pod, row in on_their_way.items()})
            results = {value["target"]: value["result"] for _, value in worker.records(OUTCOMES)}
            wanted = {"pod/shop/gone": "refused", "pod/shop/late": "failed", "pod/shop/soon": "applied"}
            return wanted.items() <= results.items() and seen[-1].keys() == {"shop/late"}

        await worker.until(answered)
        assert worker.records(PLACEMENTS)
    assert any(one.keys() == {"shop/gone", "shop/late", "shop/soon"} for one in seen), "all of them, once decided"
    assert made[0].placing("default") == {}, "the site is not ours any more"


class Counted(dict[str, Placement]):
    """Counts how often anything in it is looked at."""

    looks = 0

    def get(self, key: str, default: object = None) -> None:  # type: ignore[override]
        self.looks += 1


def test_a_pod_that_is_gone_is_forgotten_though_nobody_asks() -> None:
    bindings, gone = BindingsInFlight(), Counted()
    for number in range(5 * MANY):
        bindings.decide([Placement(f"shop/job-{number}", "u", "n1", None, 0, {}, {})], gone)  # type: ignore[arg-type]
    assert gone.looks == 4 * (MANY + 1), "each is looked for once, not at every decision"
    assert len(bindings.shown({})) == 0
