"""Every module of the wheel imports without eventlet, and only Nova's plugins need Nova."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from .conftest import ROOT, Root, Wheel

EVENTLET = ("eventlet", "greenlet", "gevent")
ML = ("lightgbm", "matplotlib", "numpy", "onnx", "onnxmltools", "onnxruntime", "scipy", "skl2onnx", "sklearn")
PLANNER = ("joblib", "matplotlib", "numba", "numpy", "polars")
CLOUD = ("nova", "placement", "keystone", "glance", "neutron", "tempest", "libvirt", "pytest", "rich", *ML, *PLANNER)
"""What an agent's, a controller's or an operator's machine may lack: extras, never dependencies."""

FOR_TESTS = {"rack/pondstack_rack": "pondstack_rack", "tests/fixtures": "tests.fixtures"}
"""Folders of what is never shipped, and what Python imports them as."""

IN_NEUTRON = ("pondstack_rack.services.neutron_wsgi",)
"""The rack's stand-in for a WSGI script of Neutron's own, which imports eventlet: not a part of pondstack."""

OF_PLANNER = "pondstack.planner."
"""What is imported by pondstack-planner alone, within its functions."""

IN_NOVA = ("pondstack_nova", "nova")
IN_TEMPEST = ("pondstack_tempest",)
IN_WATCHER = ("pondstack_watcher",)
"""Watcher itself imports eventlet, whichever threads it uses."""
OURS = ("pondstack", "pondstack_agent", "pondstack_api", "pondstack_nova", "pondstack_rdma")
NOVA_PRELOAD = ("nova.virt.libvirt.driver", "nova.virt.fake", "nova.scheduler.manager", "oslo_messaging")
PRELOAD = (
    "oslo_messaging",
    "oslo_db.sqlalchemy.enginefacade",
    "keystoneauth1.session",
    "openstack",
    "osc_lib.command.command",
)


TOGETHER = pytest.mark.parametrize(
    "together", [True, pytest.param(False, marks=pytest.mark.night)], ids=["together", "each first"]
)
"""By day a few processes import all modules, in some orders; by night each module is the first one of a process."""


def _load(
    names: list[str], wheel: Wheel, blocked: tuple[str, ...], preload: tuple[str, ...], together: bool = False
) -> None:
    lines = _failures(_orders(names) if together else names, wheel, blocked, preload)
    assert not lines, "\n".join(lines)


def _orders(names: list[str]) -> list[str]:
    """Return lines with all names: from the first one on, and from the last one back."""
    return [" ".join(names), " ".join(reversed(names))]


def _failures(names: list[str], wheel: Wheel, blocked: tuple[str, ...], preload: tuple[str, ...]) -> list[str]:
    runner = Path(__file__).with_name("import_each.py")
    command = [sys.executable, str(runner), str(wheel.folder), ",".join(blocked), ",".join(preload)]
    # Nova's services run our plugins with eventlet patching off; that is the only mode that we support.
    # The application of the API is made when its module is imported, and starts with a credential, or alone.
    alone = wheel.folder.parent / "alone.conf"
    alone.write_text("[DEFAULT]\ntransport_url = fake:/\n")
    environment = {
        **os.environ,
        "PONDSTACK_CONF_FILE": str(alone),
        "OS_NOVA_DISABLE_EVENTLET_PATCHING": "true",
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        command, input="\n".join(names), capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    assert lines or done.returncode == 0, done.stderr[-3000:]
    return lines


def _modules(roots: list[Root]) -> list[str]:
    """Every module but those that are run, not imported: alembic runs its scripts, `python -m` runs __main__."""
    return [
        name
        for root in roots
        for name in root.modules()
        if ".migrations." not in name and not name.endswith(".__main__")
    ]


def _belongs(name: str, packages: tuple[str, ...]) -> bool:
    return name.partition(":")[0].partition(".")[0] in packages


@TOGETHER
def test_modules_outside_nova_import_without_eventlet_and_without_the_rack(
    roots: list[Root], wheel: Wheel, together: bool
) -> None:
    elsewhere = IN_NOVA + IN_TEMPEST + IN_WATCHER
    names = [name for name in _modules(roots) if not _belongs(name, elsewhere) and not name.startswith(OF_PLANNER)]
    assert len(names) > 10
    _load(names, wheel, EVENTLET + CLOUD, PRELOAD, together)


@TOGETHER
def test_the_planner_imports_with_its_extra_and_without_a_cloud(
    roots: list[Root], wheel: Wheel, together: bool
) -> None:
    names = [name for name in _modules(roots) if name.startswith(OF_PLANNER)]
    assert "pondstack.planner.trace" in names
    blocked = EVENTLET + tuple(name for name in CLOUD if name not in (*PLANNER, "scipy"))
    _load(names, wheel, blocked, PRELOAD, together)


@TOGETHER
def test_rack_and_fixtures_import_without_eventlet(wheel: Wheel, tmp_path: Path, together: bool) -> None:
    """They are in no wheel of pondstack; here they lie beside it."""
    shutil.copytree(wheel.folder, tmp_path, dirs_exist_ok=True)
    names = []
    for folder, name in FOR_TESTS.items():
        shutil.copytree(ROOT / folder, tmp_path / name.replace(".", "/"), ignore=shutil.ignore_patterns("tests"))
        names += Root(name, ROOT / folder).modules()
    wanted = [name for name in names if name not in IN_NEUTRON and not name.endswith(".__main__")]
    assert "pondstack_rack.servers.mariadb" in wanted
    _load(wanted, replace(wheel, folder=tmp_path), EVENTLET, PRELOAD, together)


@TOGETHER
def test_plugins_of_nova_import_without_eventlet(roots: list[Root], wheel: Wheel, together: bool) -> None:
    """Nova 34 itself needs no eventlet: all its imports of it are conditional, so that it is blocked here as well."""
    names = [name for name in _modules(roots) if _belongs(name, IN_NOVA)]
    assert "pondstack_nova.drivers" in names
    _load(names, wheel, EVENTLET, NOVA_PRELOAD, together)


@TOGETHER
def test_the_tempest_plugin_imports_without_nova_and_without_us(
    roots: list[Root], wheel: Wheel, together: bool
) -> None:
    names = [name for name in _modules(roots) if _belongs(name, IN_TEMPEST)]
    assert "pondstack_tempest.plugin" in names
    blocked = EVENTLET + OURS + tuple(name for name in CLOUD if name not in ("tempest", "pytest"))
    _load(names, wheel, blocked, ("tempest.test",), together)


@pytest.mark.parametrize("inside_nova", [False, True])
def test_each_entry_point_loads(wheel: Wheel, inside_nova: bool) -> None:
    values = [
        value.partition("[")[0].strip()
        for group in wheel.entry_points.values()
        for value in group.values()
        if _belongs(value, IN_NOVA) is inside_nova and not _belongs(value, IN_TEMPEST + IN_WATCHER)
    ]
    assert values
    blocked, preload = (EVENTLET, NOVA_PRELOAD) if inside_nova else (EVENTLET + CLOUD, PRELOAD)
    _load(values, wheel, blocked, preload)


def test_the_block_holds(wheel: Wheel) -> None:
    """The finder really refuses: a module that imports eventlet is reported, and a module outside the wheel too."""
    (wheel.folder / "qa_probe_eventlet.py").write_text("import eventlet\n")
    try:
        lines = _failures(["qa_probe_eventlet", "email.mime"], wheel, EVENTLET, ("oslo_messaging",))
    finally:
        (wheel.folder / "qa_probe_eventlet.py").unlink()
    assert "No module named 'eventlet'" in lines[0]
    assert "not from the wheel" in lines[1]
