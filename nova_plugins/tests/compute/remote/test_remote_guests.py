"""The libvirt driver and guests with remote memory: no process of theirs runs before it is served."""

import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import nova.conf
import pytest
from nova import exception
from nova.compute import power_state
from nova.virt.libvirt import config as vconfig

from pondstack.conf import compute as conf
from pondstack_nova.compute.remote import monitor
from pondstack_nova.compute.remote.guests import RemoteGuests
from pondstack_nova.compute.remote.memory import RemoteMemoryUnavailable

CONF = nova.conf.CONF
REMOTE, PLAIN = {"pond:remote_mb": "1024"}, {"pond:policy": "local"}


def pooled(access: str) -> str:
    """Return the XML of a guest whose first node is served, with `access` to one on pool memory."""
    cells = f"<cell id='0' cpus='0' memAccess='shared' memory='2097152'/><cell id='1' {access} memory='1048576'/>"
    nodes = "<numatune><memnode cellid='1' mode='strict' nodeset='1'/></numatune>"
    return f"<domain>{nodes}<cpu><numa>{cells}</numa></cpu></domain>"


class Nova:
    """Stands for LibvirtDriver; `steps` is what happened to the guest, in order."""

    def __init__(self, _virtapi: Any, _read_only: bool = False) -> None:
        self.steps: list[str] = []
        self.states = [power_state.RUNNING]
        self.breaks = False
        self.xml = pooled("")
        self.disk = vconfig.LibvirtConfigGuestDisk()
        self.disk.source_type, self.disk.driver_cache, self.disk.target_dev = "file", "none", "vdb"
        self._host = SimpleNamespace(get_guest=lambda _instance: self.guest())
        self.disk_cachemodes: dict[str, str] = {"file": "writeback"}
        self.disk_cachemode = "none"

    def guest(self) -> Any:
        return SimpleNamespace(
            resume=lambda: self.steps.append("resume"),
            poweroff=lambda: self.steps.append("poweroff"),
            shutdown=lambda: self.steps.append("shutdown"),
            get_power_state=lambda _host: self.states.pop(0) if len(self.states) > 1 else self.states[0],
            get_xml_desc=lambda: self.xml,
        )

    def _create_guest(
        self, _context: Any, _xml: str, _instance: Any, power_on: bool, pause: bool, post_xml_callback: Any
    ) -> Any:
        assert post_xml_callback == "callback"
        self.steps.append("paused" if pause else "runs" if power_on else "defined")
        return self.guest()

    def _soft_reboot(self, _instance: Any) -> bool:
        self.steps.append("soft reboot")
        return True

    def suspend(self, _context: Any, _instance: Any) -> None:
        self.steps.append("suspend")

    def rollback_live_migration_at_source(self, _context: Any, _instance: Any, _data: Any) -> None:
        self.steps.append("rollback")

    def post_live_migration_at_destination(self, _context: Any, _instance: Any, *_: Any) -> None:
        self.steps.append("post at destination")

    def attach_volume(self, _context: Any, _info: Any, _instance: Any) -> Any:
        return self._get_volume_config()  # type: ignore[attr-defined]

    def swap_volume(self, _context: Any, _old: Any, _new: Any, _instance: Any) -> Any:
        return self._get_volume_config()  # type: ignore[attr-defined]

    def _get_volume_config(self) -> Any:
        return self.disk


class Ours(RemoteGuests, Nova):
    """The mixin over the stand-in."""

    def _pond_extend(self, _instance: Any) -> None:
        self.steps.append("extend")
        if self.breaks:
            raise RemoteMemoryUnavailable(reason="no data plane")


@pytest.fixture
def ours() -> Iterator[Ours]:
    conf.register_opts(CONF)
    CONF.set_override("emulator", "/usr/bin/pondstack-qemu", group="pondstack")
    yield Ours(None)
    CONF.clear_override("emulator", group="pondstack")


def guest(specs: dict[str, str]) -> Any:
    """Return an instance of such a flavor."""
    return SimpleNamespace(uuid="vm", flavor=SimpleNamespace(memory_mb=4096, extra_specs=specs))


@pytest.mark.parametrize(
    ("specs", "power_on", "pause", "steps"),
    [
        (REMOTE, True, False, ["paused", "extend", "resume"]),
        (REMOTE, True, True, ["paused", "extend"]),  # Nova runs it once its ports are there
        (REMOTE, False, False, ["defined"]),
        (PLAIN, True, False, ["runs"]),
        (PLAIN, True, True, ["paused"]),
    ],
)
def test_it_is_served_before_it_runs(ours: Ours, specs: Any, power_on: bool, pause: bool, steps: list[str]) -> None:
    ours._create_guest("context", "xml", guest(specs), power_on=power_on, pause=pause, post_xml_callback="callback")
    assert ours.steps == steps


def test_what_is_not_served_does_not_run(ours: Ours) -> None:
    """Its process ends at once: it would take all of its memory from the host."""
    ours.breaks = True
    with pytest.raises(RemoteMemoryUnavailable):
        ours._create_guest("context", "xml", guest(REMOTE), post_xml_callback="callback")
    assert ours.steps == ["paused", "extend", "poweroff"]


def test_a_soft_reboot_makes_the_process_anew(ours: Ours) -> None:
    """It shuts down; then Nova reboots it hard, which has it served."""
    ours.states = [power_state.RUNNING, power_state.RUNNING, power_state.SHUTDOWN]
    assert ours._soft_reboot(guest(REMOTE)) is False
    assert ours.steps == ["shutdown"]
    assert ours._soft_reboot(guest(REMOTE)) is False
    assert ours.steps == ["shutdown"], "it was off already"
    assert ours._soft_reboot(guest(PLAIN)) is True


def test_a_guest_that_does_not_shut_down(ours: Ours) -> None:
    """Nova's own patience, then a hard reboot."""
    CONF.set_override("wait_soft_reboot_seconds", 1, group="libvirt")
    try:
        assert ours._soft_reboot(guest(REMOTE)) is False
    finally:
        CONF.clear_override("wait_soft_reboot_seconds", group="libvirt")
    assert ours.steps == ["shutdown"]


@pytest.mark.parametrize("verb", ["attach_volume", "swap_volume"])
def test_a_disk_with_o_direct_is_not_attached(ours: Ours, verb: str) -> None:
    volumes = ("connection",) if verb == "attach_volume" else ("old", "new")
    with pytest.raises(RemoteMemoryUnavailable, match=r"cache mode none.*disk_cachemodes"):
        getattr(ours, verb)("context", *volumes, guest(REMOTE))
    assert getattr(ours, verb)("context", *volumes, guest(PLAIN)) is ours.disk
    ours.disk.driver_cache = "writeback"
    assert getattr(ours, verb)("context", *volumes, guest(REMOTE)) is ours.disk


def test_another_guests_disk_at_that_moment_is_its_own_matter(ours: Ours) -> None:
    """Whose disk is made is known by the thread."""
    with ours._pond_no_direct_disk(guest(REMOTE)):
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(ours._get_volume_config()))
        thread.start()
        thread.join(10)
    assert found == [ours.disk]


def test_why_a_host_has_no_guest_with_remote_memory(ours: Ours) -> None:
    """What would be refused at each build is not offered."""
    assert ours._pond_no_remote() is None
    ours.disk_cachemodes = {"block": "writeback"}
    assert "cache mode none" in str(ours._pond_no_remote())
    with patch.object(CONF.libvirt, "images_type", "rbd", create=True):
        assert ours._pond_no_remote() is None
    with patch.object(CONF.libvirt, "images_type", "lvm", create=True):
        assert ours._pond_no_remote() is None
    ours.disk_cachemode = "writeback"
    assert ours._pond_no_remote() is None
    with patch.object(CONF.libvirt, "file_backed_memory", 4096, create=True):
        assert "file_backed_memory" in str(ours._pond_no_remote())
    CONF.set_override("emulator", "", group="pondstack")
    assert "emulator" in str(ours._pond_no_remote())


@pytest.fixture
def told(ours: Ours, monkeypatch: pytest.MonkeyPatch) -> Ours:
    """What QEMU is told is one more step; it refuses where the driver breaks."""

    def tell(_guest: Any, *, on: bool) -> None:
        ours.steps.append(f"leave out: {on}")
        if ours.breaks:
            raise exception.InternalError("no monitor")

    monkeypatch.setattr(monitor, "ignore_shared", tell)
    return ours


def test_what_is_saved_has_its_memory(told: Ours) -> None:
    """Also after a live migration; where nobody knows, nothing is saved."""
    told.suspend("context", guest(PLAIN))
    told.suspend("context", guest(REMOTE))
    assert told.steps == ["suspend", "leave out: False", "suspend"]
    told.breaks = True
    with pytest.raises(exception.InternalError):
        told.suspend("context", guest(REMOTE))
    assert told.steps[-1] == "leave out: False"


def test_a_live_migration_that_fails(told: Ours) -> None:
    told.breaks = True
    told.rollback_live_migration_at_source("context", guest(REMOTE), "data")
    told.rollback_live_migration_at_source("context", guest(PLAIN), "data")
    assert told.steps == ["leave out: False", "rollback", "rollback"]


def test_qemu_fetches_no_memory_itself(ours: Ours) -> None:
    ours._pond_check_leaves(guest(REMOTE))
    CONF.set_override("live_migration_permit_post_copy", True, group="libvirt")
    try:
        with pytest.raises(exception.MigrationPreCheckError, match="live_migration_permit_post_copy"):
            ours._pond_check_leaves(guest(REMOTE))
        ours._pond_check_leaves(guest(PLAIN))
    finally:
        CONF.clear_override("live_migration_permit_post_copy", group="libvirt")


def test_qemu_leaves_no_pool_memory_out(ours: Ours) -> None:
    """With x-ignore-shared QEMU sends none of its shared files, and the destination's slices are others, and empty."""
    ours.xml = pooled("memAccess='shared'")
    with pytest.raises(exception.MigrationPreCheckError, match="pool memory would be lost; migrate it cold"):
        ours._pond_check_leaves(guest(REMOTE))
    ours._pond_check_leaves(guest(PLAIN))
    ours.xml = pooled("")  # on a node of the host, which is no file
    ours._pond_check_leaves(guest(REMOTE))


def test_what_qemus_monitor_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    answers = [{"return": {}}, {"error": {"desc": "a migration runs"}}]

    def command(domain: Any, text: str, flags: int) -> str:
        assert (domain, flags) == ("domain", 0)
        asked.append(json.loads(text))
        return json.dumps(answers.pop(0))

    monkeypatch.setattr(monitor, "_bindings", lambda: SimpleNamespace(qemuMonitorCommand=command))
    monitor.ignore_shared(SimpleNamespace(_domain="domain"), on=True)
    assert asked[0]["arguments"] == {"capabilities": [{"capability": "x-ignore-shared", "state": True}]}
    with pytest.raises(exception.InternalError, match="a migration runs"):
        monitor.ignore_shared(SimpleNamespace(_domain="domain"), on=False)
