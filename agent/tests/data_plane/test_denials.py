"""What would deny the data plane a guest's process is named before it is tried, from recorded facts of hosts."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from pondstack_agent.data_plane.client import SOCKET
from pondstack_agent.data_plane.confinement import Confinement
from pondstack_agent.data_plane.denials import HostFacts, ProcessFacts, guest_denials, host_denials

ALL = (1 << 41) - 1
UNIT = 1 << 0 | 1 << 1 | 1 << 19 | 1 << 40
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE."""
LABEL = "libvirt-6f1c2d1e-0000-4000-8000-000000000001 (enforce)"
OURS = "pondstack-data-plane (enforce)"
RULES = "#include <abstractions/base>\nptrace (readby, tracedby) peer=libvirtd,\n"
BASE = "  #   deny ptrace (tracedby) ...\n  ptrace (tracedby),\n"
"""As Debian has it."""
PLANE = ProcessFacts(700, UNIT, "unconfined")
HOST = HostFacts(ptrace_scope=1, unprivileged_userfaultfd=True, plane=PLANE, rules=BASE + RULES)
GUEST = ProcessFacts(4711, 0, LABEL)


def test_nothing_is_denied() -> None:
    """Debian's libvirt as it is installed: a guest's profile is not asked about a tracer that no profile confines."""
    assert host_denials(HOST) == guest_denials(HOST, GUEST) == []
    assert guest_denials(replace(HOST, ptrace_scope=None, plane=None, rules=None), GUEST) == []


@pytest.mark.parametrize("scope", [0, 1, 2])
def test_scopes_that_ask_for_a_capability(scope: int) -> None:
    assert host_denials(replace(HOST, ptrace_scope=scope)) == []


def test_a_scope_that_forbids_all() -> None:
    (reason,) = host_denials(replace(HOST, ptrace_scope=3))
    assert reason.startswith("kernel.yama.ptrace_scope is 3")
    assert reason in guest_denials(replace(HOST, ptrace_scope=3), GUEST)


@pytest.mark.parametrize(
    ("capabilities", "lacking"),
    [
        (UNIT & ~(1 << 19), "no CAP_SYS_PTRACE:"),
        (UNIT & ~(1 << 40), "no CAP_CHECKPOINT_RESTORE:"),
        (0, "no CAP_SYS_PTRACE and no CAP_CHECKPOINT_RESTORE:"),
    ],
)
def test_capabilities_that_the_data_plane_lacks(capabilities: int, lacking: str) -> None:
    (reason,) = host_denials(replace(HOST, plane=replace(PLANE, capabilities=capabilities)))
    assert reason.startswith(f"the data plane, process 700, has {lacking}")
    assert "pondstack-data-plane.service" in reason


def test_admin_reads_mappings_as_well() -> None:
    assert host_denials(replace(HOST, plane=replace(PLANE, capabilities=1 << 19 | 1 << 21))) == []


def test_a_guest_that_may_make_no_userfaultfd() -> None:
    host = replace(HOST, unprivileged_userfaultfd=False)
    assert host_denials(host) == []
    (reason,) = guest_denials(host, GUEST)
    assert "vm.unprivileged_userfaultfd = 1" in reason
    assert guest_denials(host, replace(GUEST, capabilities=ALL)) == [reason]  # AppArmor denies it what it has
    assert guest_denials(host, replace(GUEST, capabilities=ALL, label="unconfined")) == []


def test_a_debugger() -> None:
    assert guest_denials(HOST, replace(GUEST, tracer=99)) == ["process 4711 is traced by process 99: end that debugger"]


def test_a_confined_data_plane_needs_the_guests_rule() -> None:
    assert guest_denials(replace(HOST, plane=replace(PLANE, label=OURS)), GUEST) == []
    host = replace(HOST, plane=replace(PLANE, label=OURS), rules=RULES)
    (reason,) = guest_denials(host, GUEST)
    assert reason.startswith("AppArmor: the profile libvirt-6f1c2d1e-0000-4000-8000-000000000001 of process 4711")
    assert "install etc/apparmor/libvirt-qemu" in reason
    assert guest_denials(replace(host, rules=RULES + "ptrace (tracedby) peer=pondstack-data-plane,"), GUEST) == []
    assert guest_denials(replace(host, rules=f"{BASE}  deny ptrace (tracedby),\n"), GUEST) == [reason]
    assert guest_denials(replace(host, rules=None), GUEST) == []
    assert guest_denials(replace(host, plane=replace(PLANE, label="pondstack-data-plane (complain)")), GUEST) == []


def test_a_guest_that_nothing_confines_is_none_of_our_profile() -> None:
    host = replace(HOST, plane=replace(PLANE, label=OURS))
    (reason,) = guest_denials(host, replace(GUEST, label="unconfined"))
    assert "process 4711 is unconfined: allow it in /etc/apparmor.d/local/pondstack-data-plane" in reason
    assert guest_denials(replace(host, plane=replace(PLANE, label="own (enforce)")), replace(GUEST, label="")) == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host as it was recorded, Debian 13 with a guest; its data plane is this process."""
    files = {
        "proc/sys/kernel/yama/ptrace_scope": "1\n",
        "proc/sys/vm/unprivileged_userfaultfd": "1\n",
        "proc/4711/status": "Name:\tqemu-system-x86\nTracerPid:\t0\nCapEff:\t0000000000000000\nSeccomp:\t2\n",
        "proc/4711/attr/current": f"{LABEL}\n",
        f"proc/{os.getpid()}/status": f"Name:\tpondstack-data-\nTracerPid:\t0\nCapEff:\t{UNIT:016x}\n",
        f"proc/{os.getpid()}/attr/current": f"{OURS}\n",
        "etc/apparmor.d/abstractions/base": "  # no rule for tracers\n",
        "etc/apparmor.d/abstractions/libvirt-qemu": RULES,
        "etc/apparmor.d/abstractions/libvirt-qemu.d/own": "/srv/** r,\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_a_host_has_is_read(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confinement, rules = Confinement(tmp_path, 5, root), "  # no rule for tracers\n\n" + RULES + "\n/srv/** r,\n"
    assert confinement.host().plane is None
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)  # an address has 107 bytes at most
        listener.bind(SOCKET)
        listener.listen()
        assert confinement.host() == HostFacts(1, True, ProcessFacts(os.getpid(), UNIT, OURS), rules)
        assert confinement.process(4711) == GUEST
        assert confinement(None) == confinement(4712) == []
        (reason,) = confinement(4711)
        assert "etc/apparmor/libvirt-qemu" in reason
        rule = root / "etc/apparmor.d/abstractions/libvirt-qemu.d/pondstack"
        rule.write_text("ptrace (readby, tracedby) peer=pondstack-data-plane,\n")
        assert confinement(4711) == []


def test_a_host_of_which_nothing_is_seen(tmp_path: Path) -> None:
    assert Confinement(tmp_path, 5, tmp_path).host() == HostFacts(None, False, None, None)


def test_this_host_is_read(tmp_path: Path) -> None:
    found = Confinement(tmp_path, 5).process(os.getpid())
    assert found is not None
    assert (found.pid, found.tracer) == (os.getpid(), 0)
