"""What makes a pod equal to another, before anything is parsed."""

from underhost.agents.compiled.classes import RawClass


def test_a_class_is_cut_to_what_counts_and_keeps_the_rest() -> None:
    raw = RawClass(
        namespace="shop",
        labels=b'{"app":"web"}',
        affinity=b"affinity",
        node_selector=b"selector",
        tolerations=b"tolerations",
        spread=b"spread",
        images=("web:1",),
        containers=1,
        ports=(("TCP", "0.0.0.0", 80),),
        disks=(),
        owner=("ReplicaSet", "apps/v1", "web"),
        live=True,
        features=("UserNamespacesSupport",),
    )
    assert raw.cut(b"short", b"shorter", None)._asdict() == {
        "namespace": "shop",
        "labels": b"",
        "affinity": b"short",
        "node_selector": b"selector",
        "tolerations": b"tolerations",
        "spread": b"shorter",
        "images": ("web:1",),
        "containers": 1,
        "ports": (("TCP", "0.0.0.0", 80),),
        "disks": (),
        "owner": None,
        "live": True,
        "features": ("UserNamespacesSupport",),
    }
