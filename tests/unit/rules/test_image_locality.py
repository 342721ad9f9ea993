from support.answers.rules import scores
from support.build import a_node, a_pod, a_site

from underhost.agents.rules.image_locality import NAME


def test_a_node_with_the_image_scores_by_its_size_and_by_how_many_nodes_have_it() -> None:
    # 523 MiB on one node of two counts half: (261.5 − 23) · 100 / (1000 − 23) = 24.4
    snapshot = a_site(a_node("n1").holds("app:1", 523), a_node("n2"), a_pod("web"))
    assert scores(snapshot, "web", NAME) == {"n1": 24, "n2": 0}


def test_an_image_without_a_tag_is_the_latest() -> None:
    pod = a_pod("web").containers({"image": "registry:5000/app"})
    snapshot = a_site(a_node("n1").holds("registry:5000/app:latest", 2000), a_node("n2"), pod)
    assert scores(snapshot, "web", NAME) == {"n1": 100, "n2": 0}


def test_an_image_listed_with_two_sizes_has_the_size_on_the_first_node_by_name() -> None:
    both = [a_node("n2").holds("app:1", 1000), a_node("n1").holds("app:1", 500)]
    assert scores(a_site(*both, a_pod("web")), "web", NAME) == {"n1": 48, "n2": 48}
    assert scores(a_site(*both[::-1], a_pod("web")), "web", NAME) == {"n1": 48, "n2": 48}


def test_init_containers_and_repeated_images_count_each_time() -> None:
    pod = a_pod("web").containers({}, {}).spec(initContainers=[{"name": "i", "image": "other:1"}])
    # 2 · 500 MiB of at most 3 · 1000: (1000 − 23) · 100 / (3000 − 23) = 32.8, on both of both nodes
    snapshot = a_site(a_node("n1").holds("app:1", 500), a_node("n2").holds("app:1", 500), pod)
    assert scores(snapshot, "web", NAME) == {"n1": 32, "n2": 32}
