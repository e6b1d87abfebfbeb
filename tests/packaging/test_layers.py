"""Imports go down only, and what is imported in one file is imported in one file."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, Root

PATHS = (".", "api", "agent", "rdma", "nova_plugins", "tempest_tests", "watcher_plugin", "rack")
ONE_FILE = ("libvirt", "pyverbs", "sklearn", "lightgbm", "onnxruntime")
NEVER = ("eventlet", "greenlet", "gevent", "asyncio")


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    path = os.pathsep.join(str(root / entry) for entry in PATHS)
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def _imports(root: Root) -> Iterator[tuple[Path, str]]:
    """Yield each import of a component's files, lazy ones too, as (file, dotted name)."""
    for path, inside in root.files():
        if not inside.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield path, node.module


def test_the_layers_hold() -> None:
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("agent/pondstack_agent/planted.py", "import pondstack.db"),
        ("pondstack/domain/planted.py", "import pondstack.conf"),
        ("nova_plugins/pondstack_nova/planted.py", "import pondstack.telemetry"),
        ("api/pondstack_api/planted.py", "import pondstack_agent"),
        ("rdma/pondstack_rdma/planted.py", "import pondstack.domain.model"),
        ("pondstack/controller/planted.py", "import pondstack_rack"),
        ("pondstack/ledger/planted.py", "import pondstack.db"),
        ("pondstack/ledger/planted.py", "import sqlalchemy"),
        ("pondstack/db/planted.py", "import pondstack.controller"),
        ("tempest_tests/pondstack_tempest/planted.py", "import pondstack.domain"),
        ("watcher_plugin/pondstack_watcher/planted.py", "import pondstack.clients.nova"),
    ],
)
def test_an_import_that_goes_up_is_found(where: str, line: str, tmp_path: Path) -> None:
    for folder in ("pondstack", *PATHS[1:]):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / where).write_text(line + "\n")
    done = _lint(tmp_path)
    assert done.returncode != 0
    assert "planted" in done.stdout


def test_each_part_of_pondstack_stands_in_a_layer() -> None:
    """A folder that no layer names would be free to import anything."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["id"] == "layers")
    named = {part.strip(" ()") for layer in layers for part in layer.replace("|", ":").split(":")}
    parts = {
        f"pondstack.{path.stem}"
        for path in (ROOT / "pondstack").iterdir()
        if path.name not in {"__init__.py", "tests"}
        and (path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists()))
    }
    assert parts <= named, f"add to the layers in pyproject.toml: {sorted(parts - named)}"


@pytest.mark.parametrize("package", ONE_FILE)
def test_a_heavy_package_is_imported_in_one_file(roots: list[Root], package: str) -> None:
    files = {path for root in roots for path, name in _imports(root) if name.partition(".")[0] == package}
    assert len(files) <= 1, sorted(files)


def test_nothing_of_ours_imports_green_threads_or_asyncio(roots: list[Root]) -> None:
    found = [f"{path}: {name}" for root in roots for path, name in _imports(root) if name.partition(".")[0] in NEVER]
    assert not found


def test_the_domain_uses_the_standard_library_only(roots: list[Root]) -> None:
    found = {
        f"{path.name}: {name}"
        for root in roots
        for path, name in _imports(root)
        if path.is_relative_to(ROOT / "pondstack" / "domain")
        and name.partition(".")[0] not in sys.stdlib_module_names
        and not name.startswith("pondstack.domain")
    }
    assert not found
