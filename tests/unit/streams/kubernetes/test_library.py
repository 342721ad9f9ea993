"""What of kubernetes_asyncio is loaded, and that the rest is there for whoever asks; each in a process of its own."""

import subprocess
import sys

import pytest

LOADED = "import sys\nfrom underhost.streams.kubernetes import library\nconfig, client = library.load()\n"


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", LOADED + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_connection_loads_none_of_the_models_and_apis() -> None:
    code = "print([name for name in sys.modules if name.startswith(('{0}.models.', '{0}.api.'))])"
    assert run(code.format("kubernetes_asyncio.client")) == "[]"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(
            "print(client.ApiClient.__name__, client.Configuration.__name__)", "ApiClient Configuration", id="ours"
        ),
        pytest.param("print(client.V1Pod().to_dict()['kind'])", "None", id="a model"),
        pytest.param("print(client.models.V1Pod.__name__)", "V1Pod", id="a model of the package of models"),
        pytest.param(
            "from kubernetes_asyncio.client import CoreV1Api as it\nprint(it.__name__)", "CoreV1Api", id="an API"
        ),
        pytest.param(
            "from kubernetes_asyncio import watch\nprint(watch.Watch.__name__)", "Watch", id="a package beside"
        ),
        pytest.param("import kubernetes_asyncio as it\nprint(bool(it.__version__))", "True", id="the version"),
        pytest.param(
            "print(client.ApiClient is __import__('kubernetes_asyncio').client.ApiClient)", "True", id="one class"
        ),
        pytest.param("print(hasattr(client, 'Nothing'))", "False", id="what the library lacks"),
        pytest.param("library.load()\nprint(library.load()[1] is client)", "True", id="twice"),
    ],
)
def test_every_name_of_the_library_is_there(code: str, expected: str) -> None:
    assert run(code) == expected


def test_a_library_that_is_loaded_already_is_taken_as_it_is() -> None:
    code = "import kubernetes_asyncio as it\nfrom underhost.streams.kubernetes import library\n"
    whole = f"{code}print(library.load()[1] is it.client, it.client.V1Pod.__name__)"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True V1Pod"
