"""What the code imports is what setup.cfg asks for: what one venv happens to have is missing in the next."""

import ast
import configparser
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

import pytest

from .conftest import ROOT, Root

FIXTURES = ROOT / "tests" / "fixtures"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required(path: Path, *extras: str) -> set[str]:
    setup = configparser.ConfigParser()
    setup.read(path)
    sections = [setup["options"]["install_requires"], *(setup["options.extras_require"][extra] for extra in extras)]
    lines = [line for section in sections for line in section.splitlines() if line.strip() and line[0] != "#"]
    return {_normal(re.split(r"[\s<>=!~\[;]", line.strip())[0]) for line in lines}


def _declared(*extras: str) -> set[str]:
    return _required(ROOT / "setup.cfg", *extras)


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _undeclared(
    root: Root,
    allowed: set[str],
    late: frozenset[str] = frozenset(),
    parts: Mapping[str, set[str]] = MappingProxyType({}),
) -> set[str]:
    """Return the imports of a component whose distribution `allowed` does not name, as `file: package`.

    `late`: what an import within a function may name besides, such as the driver of the database that is in use.
    `parts`: what all of a folder may import besides, as an extra is there for it alone.
    """
    own = {"pondstack", "pondstack_api", "pondstack_agent", "pondstack_nova", "pondstack_rdma"}
    own |= {"pondstack_tempest", "pondstack_watcher", "pondstack_rack", "tests"}
    found: set[str] = set()
    for path, inside in root.files():
        if not inside.endswith(".py"):
            continue
        tree = ast.parse(path.read_text(), str(path))
        more = {name for folder, extra in parts.items() if inside.startswith(folder) for name in extra}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for top in {name.partition(".")[0] for name in names} - own - sys.stdlib_module_names:
                # A namespace package (neutron, paste) belongs to several distributions: one declared is enough.
                wanted = allowed | more if node in tree.body else allowed | more | late
                if not {_normal(name) for name in _distributions().get(top, [top])} & wanted:
                    found.add(f"{inside}: {top}")
    return found


@pytest.mark.parametrize("name", ["pondstack", "pondstack_agent", "pondstack_api", "pondstack_rdma"])
def test_what_is_imported_is_required(roots: list[Root], name: str) -> None:
    (root,) = (root for root in roots if root.name == name)
    # pyverbs has to be the distribution's: PyPI's is not of the same release as the libraries of rdma-core.
    # Commands run within the shell of python-openstackclient; a service that has them installed needs no shell.
    # Clients of a cluster have to be of the cluster's release: whoever has one installs what it has.
    others = {"pyverbs", "python-openstackclient", "distributed", "ray"}
    late = frozenset(_declared("postgresql", "balloon", "ml", "redfish") | others)
    parts = {"pondstack/planner/": _declared("planner")}
    assert _undeclared(root, _declared(), late=late, parts=parts) == set()


def test_plugins_need_nova_and_what_is_required(roots: list[Root]) -> None:
    (root,) = (root for root in roots if root.name == "pondstack_nova")
    # They run in the venv of a Nova, which has what Nova itself asks for.
    of_nova = {_normal(re.split(r"[^\w.-]", line)[0]) for line in metadata.requires("nova") or ()}
    assert _undeclared(root, _declared() | of_nova | {"nova"}) == set()


def test_the_tempest_plugin_needs_its_extra_and_nothing_else(roots: list[Root]) -> None:
    (root,) = (root for root in roots if root.name == "pondstack_tempest")
    # Tempest itself asks for what is of oslo.
    assert _undeclared(root, {"tempest", "oslo-config", "oslo-log", "oslo-serialization"}) == set()


def test_the_plugin_of_watcher_needs_what_watcher_has_and_nothing_else(roots: list[Root]) -> None:
    """It is installed without dependencies: it and what it imports of ours want no more than Watcher brings."""
    (root,) = (root for root in roots if root.name == "pondstack_watcher")
    of_watcher = {_normal(re.split(r"[^\w.-]", line)[0]) for line in metadata.requires("python-watcher") or ()}
    (ours,) = (root for root in roots if root.name == "pondstack")
    wanted = {"pondstack/conf/watcher.py", "pondstack/osc/client.py", "pondstack/domain/printable.py"}
    # python-openstackclient brings osc-lib.
    found = _undeclared(root, of_watcher | {"python-watcher"}) | _undeclared(ours, of_watcher | {"osc-lib"})
    assert {item for item in found if item.partition(":")[0] in wanted or item.startswith("pondstack_watcher")} == set()


@pytest.mark.parametrize("root", [Root("pondstack_rack", ROOT / "rack" / "pondstack_rack"), Root("fixtures", FIXTURES)])
def test_rack_and_fixtures_need_the_extras(root: Root) -> None:
    assert _undeclared(root, _declared("postgresql", "test") | _required(ROOT / "rack" / "setup.cfg")) == set()
