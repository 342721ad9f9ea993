"""Names come from tenants: whatever they hold, the page shows it as text and runs nothing of it."""

from dataclasses import replace
from typing import Any

import msgspec
from playwright.sync_api import expect
from support.processes.browser import Visits
from support.published import a_finding
from support.sites.shown import ShownSite

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.kubernetes import Metadata, Node, OwnerReference, Pod, PodSpec, PodStatus
from underhost.schemas.records import FindingEvent, NodeHost, Outcome
from underhost.schemas.topics import OUTCOMES
from underhost.schemas.vsphere import Host

PAYLOADS = [
    '<script>window.ran=1</script><img src=x onerror=window.ran=1>"><svg onload=window.ran=1>',
    "</title><iframe srcdoc='<script>parent.ran=1</script>'>' onfocus=window.ran=1 autofocus x='",
    "javascript:window.ran=1//{{constructor.constructor('window.ran=1')()}}${window.ran=1}",
    "a\u202egnp.exe\u2066\u0000\u001b[31mred\u0007",
    "__proto__",
    "%00%2e%2e%2f" + "x" * 300,
]


def hostile() -> Snapshot:
    """For each payload a host, a node, a pod and a workload, all of this name."""
    pods = {}
    for name in PAYLOADS:
        owner = [OwnerReference("Deployment", name, "d", "apps/v1", True)]
        meta = Metadata(name=name, namespace="shop", uid=name, owner_references=owner)
        pods[f"shop/{name}"] = Pod(meta, PodSpec(node_name=name), PodStatus("Running"))
    return Snapshot(
        site="prod",
        nodes={name: Node(Metadata(name=name, uid=name, labels=_labels(name))) for name in PAYLOADS},
        pods=pods,
        hosts={name: Host(name, name, name, labels={name: name, "x": name}) for name in PAYLOADS},
        node_hosts={name: NodeHost(name, name, name, name, name) for name in PAYLOADS},
        vsphere=True,
    )


def _labels(name: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"topology.kubernetes.io/zone": name}))


def findings() -> list[FindingEvent]:
    return [
        msgspec.structs.replace(a_finding(name, f"shop/{name}"), rule=name, source=name, reason=name, message=name)
        for name in PAYLOADS
    ]


def test_a_name_runs_nothing_wherever_it_is_shown(visits: Visits, shown: ShownSite) -> None:
    shown.put(hostile(), *findings())
    page = visits.open(shown.address)
    for name in PAYLOADS:
        shown.tell(OUTCOMES, "prod/pod/x/y", Outcome("i", "bind", f"pod/shop/{name}", "applied", name))
    for at in range(len(PAYLOADS)):
        page.locator("#map .pod").nth(at).hover()
        expect(page.locator("#tip")).to_be_visible()
        page.locator("#findings .item").nth(at).click()
        for kind, focused in (("host", "host-head"), ("node", "node-head"), ("pod", "pod")):
            page.locator(f"#map .{focused}").nth(at).focus()
            page.keyboard.press("Enter")
            expect(page.locator("#panel .kind")).to_have_text(kind)
        expect(page.locator("#panel .verdict > li, #panel .note.bad").first).to_be_visible()
        assert hidden(page) == ""
        page.keyboard.press("Escape")
    page.click("#tab-activity")
    expect(page.locator("#activity li")).to_have_count(len(PAYLOADS))
    for key in page.locator("#group option").evaluate_all("all => all.map((each) => each.value)"):
        page.select_option("#group", key)
        assert hidden(page) == ""
    page.fill("#search", PAYLOADS[0])
    expect(page.locator("#search-count")).not_to_have_text("nothing")
    made = "body => body.querySelectorAll('script, iframe, svg[onload], img:not([alt=\"\"])').length"
    assert page.locator("body").evaluate(made) == 0
    assert page.evaluate("window.ran") is None
    shown.put(replace(hostile(), pods={}))  # findings end, pods go: nothing breaks
    expect(page.locator("#map .pod")).to_have_count(0)


def hidden(page: Any) -> str:
    """Characters of what is shown that hide, reorder or ring."""
    text = page.locator("body").inner_text() + page.title()
    return "".join(char for char in text if (ord(char) < 32 and char not in "\n\t") or char in "\u202e\u2066\u007f")
