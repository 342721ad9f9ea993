"""What is delivered: every dependency in the SBOM with its hashes, the audit of the locks, images by version."""

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements" / "run.txt"


# ---------------------------------------------------------------------------------------------------------- the SBOM
@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is called as the wheel is."""
    path = tmp_path_factory.mktemp("dist") / "underhost-0.1.0-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


@pytest.fixture(scope="module")
def sbom(wheel: Path) -> str:
    """The SBOM of the wheel, as `make sbom` writes it."""
    command = [sys.executable, str(ROOT / "requirements" / "sbom.py"), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    path = wheel.with_name("underhost-0.1.0.cdx.json")
    assert done.stdout == f"{path}\n"
    return path.read_text()


def test_the_sbom_holds_every_locked_requirement_with_version_and_hashes(sbom: str) -> None:
    locked = {
        row.split()[0]: re.findall(r"--hash=sha256:(\w{64})", row)
        for row in LOCK.read_text().replace("\\\n", " ").splitlines()
        if re.match(r"[\w.-]+==", row)
    }
    assert len(locked) > 40
    listed = {
        f"{one['name']}=={one['version']}": [each["content"] for each in one["hashes"]]
        for one in json.loads(sbom)["components"]
    }
    assert {name: sorted(hashes) for name, hashes in listed.items()} == {
        name: sorted(hashes) for name, hashes in locked.items()
    }
    assert [name for name, hashes in listed.items() if not hashes] == []


def test_the_sbom_is_of_the_wheel_that_it_lies_beside(sbom: str, wheel: Path) -> None:
    of = json.loads(sbom)["metadata"]["component"]
    assert (of["name"], of["version"], of["purl"]) == ("underhost", "0.1.0", "pkg:pypi/underhost@0.1.0")
    assert of["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]


def test_the_sbom_says_who_needs_whom(sbom: str) -> None:
    needs = {one["ref"].partition("==")[0]: one.get("dependsOn", []) for one in json.loads(sbom)["dependencies"]}
    direct = {one.partition("==")[0] for one in needs["underhost"]}
    asked = {re.split(r"[<>=;\[ ]", line)[0] for line in (ROOT / "requirements" / "run.in").read_text().splitlines()}
    assert direct == asked
    assert {one.partition("==")[0] for one in needs["aiohttp-cors"]} == {"aiohttp"}


def test_the_sbom_is_valid_and_made_twice_it_is_the_same(sbom: str, wheel: Path) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(sbom) is None
    subprocess.run([sys.executable, str(ROOT / "requirements" / "sbom.py"), str(wheel)], check=True)
    assert wheel.with_name("underhost-0.1.0.cdx.json").read_text() == sbom


# --------------------------------------------------------------------------------------------------------- the audit
WEAKNESS = {
    "id": "PYSEC-1",
    "aliases": [],
    "summary": "s",
    "details": "d",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "six"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.18.0"}]}],
        }
    ],
}


@pytest.fixture
def service() -> Iterator[Callable[[dict[str, Any] | None], str]]:
    """Starts a service on loopback that says this of every package; None: it is not there. Gives its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: dict[str, Any] | None) -> str:
        class Service(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.dumps(answer).encode()
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        address = f"http://127.0.0.1:{server.server_port}/v1/query"
        if answer is None:
            server.server_close()
            return address
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return address

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("answer", "code", "out", "error"),
    [
        pytest.param({}, 0, "no weakness is known of 1 packages\n", "", id="nothing is known"),
        pytest.param({"vulns": [WEAKNESS]}, 1, "six 1.17.0: PYSEC-1, not in 1.18.0\n", "", id="a weakness"),
        pytest.param(
            None, 3, "", "error: nothing was audited, as the service did not answer: NewConnectionError",
            id="the service is away",
        ),
    ],
)  # fmt: skip
def test_the_audit_says_what_is_known_and_whether_anybody_answered(
    tmp_path: Path, service: Callable[[dict[str, Any] | None], str], answer: Any, code: int, out: str, error: str
) -> None:
    (tmp_path / "lock.txt").write_text(f"six==1.17.0 --hash=sha256:{1:064d}\n")
    flags = ["-r", str(tmp_path / "lock.txt"), "-s", "osv", "--osv-url", service(answer)]
    command = [sys.executable, str(ROOT / "requirements" / "audit.py"), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, out)
    assert done.stderr.startswith(error)
    assert done.stderr.count("\n") == (1 if error else 0)


def test_a_package_that_the_service_does_not_know_is_not_called_sound(tmp_path: Path) -> None:
    (tmp_path / "pip_audit.py").write_text(
        'print(\'{"dependencies": [{"name": "six", "skip_reason": "not found"}, '
        '{"name": "yarl", "version": "1", "vulns": []}]}\')'
    )
    command = [sys.executable, str(ROOT / "requirements" / "audit.py")]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "error: of 1 packages the service knows nothing: six\n"


def test_no_test_and_no_check_depends_on_the_service_of_the_audit() -> None:
    makefile, ci = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    asking = [line for line in makefile.splitlines() if "audit" in line and not line.startswith((".PHONY", "audit:"))]
    assert asking == ["\t@$(BIN)/python requirements/audit.py $(ARGS)"]
    assert "audit" not in ci


# -------------------------------------------------------------------------------------------------------- the images
VERSION = re.compile(
    r"(?P<name>[\w./-]+):(?P<tag>v?\d+(\.\d+)+(-[\w.]+)?|[a-z]+-slim|\d[\w.-]*)(@sha256:[0-9a-f]{64})?"
)


def images() -> Iterator[Any]:
    """Every image that something of the project names, by file."""
    stack = yaml.safe_load((ROOT / "compose" / "compose.yaml").read_text())
    for name, one in stack["services"].items():
        yield pytest.param(one["image"], id=f"compose.yaml {name}")
    for path in sorted((ROOT / "compose").glob("*Dockerfile")):
        for number, base in enumerate(re.findall(r"^FROM (\S+)", path.read_text(), re.M), 1):
            yield pytest.param(base, id=f"{path.name} stage {number}")
    manifests = [ROOT / "compose" / "kubernetes" / "underhost.yaml", *(ROOT / "tests/data/kubernetes").glob("s*.yaml")]
    for path in sorted(manifests):
        for image in sorted(set(re.findall(r"^\s+image: (\S+)$", path.read_text(), re.M))):
            yield pytest.param(image, id=path.name)


@pytest.mark.parametrize("image", list(images()))
def test_an_image_is_named_by_version(image: str) -> None:
    found = VERSION.fullmatch(image)
    assert found is not None, "neither a version nor a release"
    assert not found["tag"].startswith("latest")
