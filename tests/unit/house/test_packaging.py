"""The wheel ships every folder, nothing imports a folder by its bare name, and importing does nothing."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("streams", "agents", "schemas")


def modules() -> list[str]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return sorted(".".join(("underhost", *path.relative_to(ROOT).with_suffix("").parts)) for path in paths)


def test_every_package_folder_is_listed_for_the_wheel() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    on_disk = {
        ".".join(("underhost", *init.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    without_modules = {"underhost.agents.http.static", "underhost.runbooks"}  # the page, and what it links to
    assert on_disk | without_modules == set(listed)


def test_the_wheel_is_built_without_a_warning_and_holds_the_page(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in (*FOLDERS, "docs/runbooks"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "Warning" in line]) == (0, []), done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    held = zipfile.ZipFile(wheel).namelist()
    page = [path.relative_to(ROOT) for path in (ROOT / "agents/http/static").rglob("*") if path.is_file()]
    assert {f"underhost/{path}" for path in page} <= set(held)


def test_the_package_names_the_projects_addresses() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert list(urls) == ["Homepage", "Documentation", "Changelog"]
    assert {urlsplit(url).netloc for url in urls.values()} == {"underhost.io"}  # the domain of its annotations


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_bare_folder_name_is_refused(folder: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert f"import underhost.{folder}" in done.stderr


def test_importing_every_module_opens_no_socket_file_or_thread() -> None:
    script = f"""
import socket, sys, threading
before = threading.active_count()
def refuse(*args, **kwargs):
    raise SystemExit("a socket was opened at import")
socket.socket.connect = refuse
socket.socket.bind = refuse
import importlib
for name in {modules()!r}:
    if not name.endswith(("__init__", "__main__")):
        importlib.import_module(name)
ours = [name for name in sys.modules if name.startswith("underhost.")]
assert len(ours) >= {len(FOLDERS)}, ours
assert threading.active_count() == before, threading.enumerate()
print("clean")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("clean", 0), done.stderr[-2000:]


def test_what_a_short_command_imports_stays_light() -> None:
    script = """
import sys
import underhost.agents.cli
from underhost.agents.commands.application import build
build()
heavy = {"polars", "numpy", "faust", "aiokafka", "kubernetes_asyncio", "pyVmomi", "pydantic", "aiohttp"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
