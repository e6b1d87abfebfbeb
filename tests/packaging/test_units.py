"""The units of systemd: what a broken-into service could do, by the score of systemd itself; what each must have."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from oslo_privsep.capabilities import CAPS_BYVALUE

from pondstack.conf import agent, data_plane
from pondstack_agent import separation
from pondstack_agent.drivers.cxl import privileged as cxl
from pondstack_agent.host import privileged as host
from pondstack_agent.mitigation import privileged as mitigation
from pondstack_agent.partition import privileged as partition
from pondstack_agent.power.program import WAKER
from tests.hardware.guest.cxl import CAPABILITIES

from .conftest import ROOT

UNITS = sorted((ROOT / "etc/deploy").glob("*.service"))
MOST = 4.0
"""Exposure from 0 (none) to 10; systemd calls less than 5 OK, and a unit without a directive 9.6."""
ALL_HAVE = {
    "NoNewPrivileges": "true",
    "ProtectHome": "true",
    "PrivateTmp": "true",
    "ProtectKernelLogs": "true",
    "ProtectClock": "true",
    "RestrictNamespaces": "true",
    "RestrictSUIDSGID": "true",
    "LockPersonality": "true",
    "MemoryDenyWriteExecute": "true",
    "SystemCallArchitectures": "native",
    "LimitCORE": "0",
    "UMask": "0077",
}


def settings(unit: Path) -> dict[str, str]:
    """Return the last value of each setting."""
    lines = [line.partition("=") for line in unit.read_text().splitlines() if re.match(r"[A-Z]\w+=", line)]
    return {name: value for name, _, value in lines}


def test_there_are_units() -> None:
    assert [unit.name for unit in UNITS] == [
        "pondstack-agent.service",
        "pondstack-api.service",
        "pondstack-controller.service",
        "pondstack-data-plane.service",
        "pondstack-waker.service",
    ]


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze (package systemd) is not installed"
)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_exposes_little(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--no-pager", "--offline=true", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    print(f"{unit.name}: {found[1]} of 10, at most {MOST:g}")
    rows = "\n".join(line for line in done.stdout.splitlines() if "✗" in line)
    assert float(found[1]) < MOST, rows


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_has_what_all_can_have(unit: Path) -> None:
    given = settings(unit)
    assert {name: given.get(name) for name in ALL_HAVE} == ALL_HAVE
    assert given["ProtectSystem"] in ("full", "strict")


@pytest.mark.parametrize("name", ["api", "controller"])
def test_who_speaks_to_others_is_nobody(name: str) -> None:
    given = settings(ROOT / f"etc/deploy/pondstack-{name}.service")
    assert (given["User"], given["CapabilityBoundingSet"]) == ("pondstack", "")


def test_the_agent_starts_with_what_its_privileged_processes_need() -> None:
    """And with what it takes to become another user. By systemd, modules are loaded; promotion needs a drop-in."""
    unit = settings(ROOT / "etc/deploy/pondstack-agent.service")
    given = unit["CapabilityBoundingSet"].split()
    needed = {CAPS_BYVALUE[number] for context in separation.CONTEXTS for number in context.needed}
    assert given == sorted(given)
    assert set(given) == needed - {"CAP_SYS_MODULE", "CAP_SYS_ADMIN"} | {"CAP_SETUID", "CAP_SETGID"}
    assert unit["User"] == "pondstack"
    assert unit["ExecStart"].startswith("!/")  # as root; the folders are the user's


def test_the_data_plane_has_the_folders_that_the_agents_options_say() -> None:
    unit = settings(ROOT / "etc/deploy/pondstack-data-plane.service")
    _, verb, folder, user, mirrors = unit["ExecStart"].split()
    state = [f"/var/lib/{name}" for name in unit["StateDirectory"].split()]
    assert (verb, [folder, mirrors]) == ("serve", state)
    assert mirrors == next(option.default for option in data_plane.OPTS if option.name == "mirror_folder")
    assert user == next(option.default for option in agent.AGENT_OPTS if option.name == "user")
    assert (unit["Restart"], unit["StateDirectoryMode"]) == ("always", "0711")


def test_the_data_plane_reaches_lenders_over_verbs() -> None:
    path = ROOT / "etc/deploy/pondstack-data-plane.service"
    allowed = re.findall(r"^DeviceAllow=(\S+) rw$", path.read_text(), re.MULTILINE)
    assert set(allowed) == {"char-infiniband_verbs", "/dev/infiniband/rdma_cm"}
    unit = settings(path)
    assert set(unit["RestrictAddressFamilies"].split()) == {"AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"}
    assert (unit.get("PrivateDevices"), unit["LimitMEMLOCK"]) == (None, "infinity")


def test_the_waker_has_the_options_and_what_it_keeps_of_root() -> None:
    unit = settings(ROOT / "etc/deploy/pondstack-waker.service")
    assert unit["ExecStart"].split()[1:3] == ["--folder", f"/var/lib/{unit['StateDirectory']}"]
    kept = {CAPS_BYVALUE[number] for number in WAKER.abilities}
    assert set(unit["CapabilityBoundingSet"].split()) == kept | {"CAP_IPC_LOCK"}
    assert (unit["Restart"], unit["LimitMEMLOCK"]) == ("always", "infinity")


def test_emulated_hosts_have_the_capabilities_of_the_processes_that_are_tested_there() -> None:
    tested = (cxl.context, partition.context, host.context, mitigation.context)
    assert {number for context in tested for number in context.needed} == CAPABILITIES
