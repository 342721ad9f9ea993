"""Build the wheel and write its SBOM beside it: CycloneDX 1.6, of the wheel and all that `run.txt` locks.

In: `requirements/run.txt`, `pyproject.toml`, and a wheel (an argument; else it is built into `dist`). Out:
NAME-VERSION.cdx.json.
Equal input gives equal bytes. A component's hashes are those of the files that may be installed of it: one of them is.
"""

import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from pip_requirements_parser import RequirementsFile

HERE = Path(__file__).parent
DIST = HERE.parent / "dist"
LOCK = HERE / "run.txt"
HASHES = HashTypeFactory()


def main(arguments: list[str]) -> None:
    """Write the SBOM of the wheel that is named, or of one that is built now; say where."""
    wheel = Path(arguments[0]) if arguments else build()
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    text = JsonV1Dot6(bom_of(wheel, project)).output_as_string(indent=2)
    if fault := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"the SBOM is not valid: {fault.data.message}")
    path = wheel.with_name(f"{project['name']}-{project['version']}.cdx.json")
    path.write_text(text + "\n")
    print(path)


def build() -> Path:
    """The wheel, built with the locked setuptools; others of `dist` are left as they are."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", DIST, HERE.parent]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return max(DIST.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def bom_of(wheel: Path, project: dict[str, str]) -> Bom:
    """The bill of materials; who needs whom is what the lock says of it."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    root = Component(
        type=ComponentType.APPLICATION,
        name=project["name"],
        version=project["version"],
        description=project["description"],
        licenses=[LicenseExpression(project["license"])],
        purl=PackageURL("pypi", name=project["name"], version=project["version"]),
        bom_ref=f"{project['name']}=={project['version']}",
        hashes=[HASHES.from_hashlib_alg("sha256", digest)],
    )
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, digest))
    bom.metadata.timestamp = None
    bom.metadata.component = root
    found: dict[str, list[Component]] = {"": [root]}
    for one in components():
        bom.components.add(one)
        found.setdefault(one.name, []).append(one)
    needs: dict[str, set[str]] = {name: set() for name in found}
    for name, users in who_needs():
        for user in users:
            needs[user].add(name)
    for user, names in needs.items():
        for one in found[user]:
            bom.register_dependency(one, [needed for name in sorted(names) for needed in found[name]])
    return bom


def components() -> Iterator[Component]:
    """Every locked package with its hashes; what is locked for each of several Pythons is there with each version."""
    for row in RequirementsFile.from_file(str(LOCK)).requirements:
        version = row.get_pinned_version
        algorithms = [hash_.removeprefix("--hash=").split(":") for hash_ in row.hash_options]
        yield Component(
            name=row.name,
            version=version,
            description=f"where {row.marker}" if row.marker else None,
            purl=PackageURL("pypi", name=row.name, version=version),
            bom_ref=f"{row.name}=={version}",
            hashes=[HASHES.from_hashlib_alg(algorithm, digest) for algorithm, digest in algorithms],
        )


def who_needs() -> Iterator[tuple[str, list[str]]]:
    """By package, the packages that brought it into the lock; "" is the project itself."""
    name, users = "", list[str]()
    for line in LOCK.read_text().splitlines():
        if not line.startswith((" ", "#")):
            yield from [(name, users)] if name else []
            name, users = line.partition("==")[0].partition("[")[0], []
        elif line.startswith("    # via "):
            users.append(user_of(line.removeprefix("    # via ")))
        elif line.startswith("    #   ") and not line.startswith("    #   -c"):
            users.append(user_of(line.removeprefix("    #   ")))
    yield name, users


def user_of(said: str) -> str:
    """The package that a comment of the lock names; "" for the project's own requirements."""
    return "" if said.startswith("-r ") else said


if __name__ == "__main__":
    main(sys.argv[1:])
