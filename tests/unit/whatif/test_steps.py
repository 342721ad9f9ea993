"""How steps are written: as on the command line, with kubectl's ways to remove a taint or a label."""

import pytest
from support.answers.whatif import plan

from underhost.agents.whatif.steps import (
    Cordon,
    Delete,
    Drain,
    Fail,
    Label,
    Maintain,
    Step,
    TaintNode,
    described,
    parse,
)
from underhost.schemas.errors import InputError


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("delete shop/db-0", Delete("shop/db-0")),
        ("delete pod/shop/db-0", Delete("shop/db-0")),
        ("drain n1", Drain(("n1",))),
        ("drain node/n1", Drain(("n1",))),
        ("fail node/n1", Fail(("node/n1",))),
        ("fail host/esx-1.lab", Fail(("host/esx-1.lab",))),
        ("maintain host/h1", Maintain("h1")),
        ("maintain h1", Maintain("h1")),
        ("cordon n1", Cordon("n1")),
        ("uncordon n1", Cordon("n1", False)),
        ("taint n1=k=v:NoExecute", TaintNode("n1", "k", "v", "NoExecute")),
        ("taint n1=a.io/k:NoSchedule", TaintNode("n1", "a.io/k", "", "NoSchedule")),
        ("taint n1=k:NoSchedule-", TaintNode("n1", "k", "", "NoSchedule", True)),
        ("taint n1=k=v:NoSchedule-", TaintNode("n1", "k", "v", "NoSchedule", True)),
        ("taint n1=k-", TaintNode("n1", "k", "", "", True)),
        ("label n1=performance=high", Label("n1", "performance", "high")),
        ("label n1=empty=", Label("n1", "empty", "")),
        ("label n1=a.io/k-", Label("n1", "a.io/k", None)),
    ],
)
def test_a_step_is_written(line: str, step: Step) -> None:
    assert plan(line) == [step]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("delete db-0", "NAMESPACE/NAME is expected"),
        ("drain host/h1", "a node is expected"),
        ("fail node/", "named node/NODE or host/HOST"),
        ("fail pod/x", "named node/NODE or host/HOST"),
        ("maintain node/n1", "a host is expected"),
        ("taint n1", "NODE=KEY=VALUE:EFFECT is expected"),
        ("taint n1=k=v", "NODE=KEY=VALUE:EFFECT is expected"),
        ("taint n1=k=v:NoExec", "'NoExec' is none of NoSchedule, PreferNoSchedule, NoExecute"),
        ("taint n1=k k=v:NoExecute", "is no key"),
        ("taint n1=k=v v:NoExecute", "is no value"),
        ("label n1=k", "NODE=KEY=VALUE is expected"),
        ("label n1", "NODE=KEY=VALUE is expected"),
        ("label n1==v", "is no key"),
        (f"label n1=k={'v' * 64}", "is no value"),
        ("reboot n1", "no such step"),
    ],
)
def test_a_step_is_refused_in_one_line(line: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        plan(line)
    assert len(refused.value.faults) == 1


def test_a_step_that_names_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="names nothing"):
        parse("drain", "")


def test_steps_are_told_in_words_and_every_node_of_a_drain_is_a_step() -> None:
    steps = [Drain(("n1", "n2")), Fail(("node/n1", "host/h1"), False), *plan("taint n1=k=v:NoExecute", "label n1=k-")]
    assert described(steps) == [
        "drain n1",
        "drain n2",
        "node/n1, host/h1 fail, no HA",
        "taint n1 k=v:NoExecute",
        "label n1 k-",
    ]
