"""The plugin as Tempest loads it; what its tests promise: stable imports, unique ids, no sleeps."""

import ast
import unittest
import uuid
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from oslo_config import cfg
from tempest.test_discover import plugins

import pondstack_tempest
from pondstack_tempest import config, plugin

FOLDER = Path(pondstack_tempest.__file__).parent
STABLE = (
    "tempest.lib",
    "tempest.config",
    "tempest.test_discover.plugins",
    "tempest.common.credentials_factory",
    "tempest.clients",
    "tempest.test",
)
"""What Tempest's documentation of plugins calls stable."""


def _trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(FOLDER.rglob("*.py")):
        yield path, ast.parse(path.read_text(), str(path))


def _imports() -> Iterator[tuple[Path, str]]:
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from ((path, f"{node.module}.{alias.name}") for alias in node.names)


def _tests() -> Iterator[tuple[Path, ast.ClassDef, ast.FunctionDef]]:
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and item.name.startswith("test_"):
                        yield path, node, item


def _decorators(test: ast.FunctionDef, name: str) -> list[ast.Call]:
    return [
        found
        for found in test.decorator_list
        if isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute) and found.func.attr == name
    ]


def test_tempest_finds_the_plugin() -> None:
    (entry,) = [entry for entry in entry_points(group="tempest.test_plugins") if entry.name == "pondstack"]
    assert issubclass(entry.load(), plugins.TempestPlugin)


def test_the_options_are_registered_and_listed() -> None:
    conf = cfg.ConfigOpts()
    conf.register_group(cfg.OptGroup("service_available"))
    loaded = plugin.PondstackTempestPlugin()
    loaded.register_opts(conf)
    conf([])
    assert conf.service_available.pondstack is True
    listed = dict(loaded.get_opt_lists())
    assert {option.name for option in listed["pondstack"]} == {option.name for option in config.OPTIONS}
    assert all(option.help for options in listed.values() for option in options)
    # Off unless somebody says so: what ends services, and what not every cloud has.
    own = conf.pondstack
    assert (own.service_command, own.expendable_hosts, own.lending_host) == ("", [], "")
    assert not any((own.remote_memory, own.swap, own.zombie, own.mitigation, own.ha))


def test_only_stable_parts_of_tempest_are_imported() -> None:
    of_tempest = [(path, name) for path, name in _imports() if name.split(".")[0] == "tempest"]
    wrong = [
        (path.name, name)
        for path, name in of_tempest
        if not any(name == good or name.startswith(f"{good}.") for good in STABLE)
    ]
    assert of_tempest
    assert wrong == []


def test_each_test_has_an_id_of_its_own() -> None:
    ids: list[str] = []
    for path, _, test in _tests():
        (mark,) = _decorators(test, "idempotent_id")
        (argument,) = mark.args
        assert isinstance(argument, ast.Constant), f"{path}: {test.name}"
        assert str(uuid.UUID(str(argument.value))) == argument.value, f"{path}: {test.name}"
        ids.append(str(argument.value))
    assert len(ids) > 50
    assert len(set(ids)) == len(ids)


def test_refusals_are_tagged_negative() -> None:
    for path, _, test in _tests():
        if "refused" in test.name or "not_found" in test.name:
            words = [ast.unparse(mark) for mark in _decorators(test, "attr")]
            assert any("negative" in word for word in words), f"{path.name}: {test.name}"


def test_what_kills_services_runs_alone() -> None:
    """A class that uses the service command, an expendable host or the lead is serial."""
    signs = ("self.services.", "= self.services", "an_expendable_host", "lending_host", "fail_over()")
    for path, tree in _trees():
        if path.name == "base.py":
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and any(sign in ast.unparse(node) for sign in signs):
                assert any(ast.unparse(mark).endswith("serial") for mark in node.decorator_list), f"{path}: {node.name}"


def test_nothing_sleeps() -> None:
    assert [str(path) for path, name in _imports() if name.split(".")[0] == "time"] == []


def test_unittest_discovers_them_as_tempest_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tempest.conf").write_text(f"[oslo_concurrency]\nlock_path = {tmp_path}\n")
    monkeypatch.setenv("TEMPEST_CONFIG_DIR", str(tmp_path))
    suite = unittest.TestLoader().discover(
        *plugin.PondstackTempestPlugin().load_tests()[:1], top_level_dir=str(FOLDER.parent)
    )
    assert suite.countTestCases() == len(list(_tests()))
