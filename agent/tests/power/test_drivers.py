"""What every power driver keeps to, each over folders that stand for its kernel; and what each is besides."""

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from pondstack.domain.errors import Unavailable
from pondstack.domain.power import MODES
from pondstack_agent.power.base import Setting, change
from pondstack_agent.power.cgroups import freezable
from pondstack_agent.power.frozen import Frozen, matching
from pondstack_agent.power.kernel_sleep import s3, sz
from pondstack_agent.power.low_power import LowPowerS0
from pondstack_agent.power.power_off import PowerOff
from pondstack_rack.wait import wait_until

pytestmark = pytest.mark.unit

SECONDS = 60.0


@pytest.fixture
def sys(tmp_path):
    """A /sys of three CPUs, with all that a kernel may offer."""
    power, cpus = tmp_path / "sys/power", tmp_path / "sys/devices/system/cpu"
    power.mkdir(parents=True)
    (power / "state").write_text("freeze mem disk zom\n")
    (power / "mem_sleep").write_text("[s2idle] deep\n")
    for number in range(3):
        (cpus / f"cpu{number}").mkdir(parents=True)
        if number:
            (cpus / f"cpu{number}" / "online").write_text("1\n")
    (cpus / "cpu0/cpuidle/state1").mkdir(parents=True)
    (cpus / "cpu0/cpuidle/state1/disable").write_text("1\n")
    return tmp_path / "sys"


@pytest.fixture
def cgroups(tmp_path):
    """The lender has a group of its own, beside services that share one."""
    root = tmp_path / "cgroup"
    for name, pids in (("system/agent", [11]), ("system/lender", [12]), ("user", [13]), ("pond", [14])):
        (root / name).mkdir(parents=True)
        (root / name / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    for group in (root / "system", *root.rglob("*/")):
        if group != root:
            (group / "cgroup.freeze").write_text("0\n")
            (group / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    (root / "cgroup.controllers").write_text("cpu memory\n")
    return root


@pytest.fixture
def child():
    """A process that another one, which stands for the host's, has started."""
    made = subprocess.Popen(["sh", "-c", "sleep 601 & wait; exit 0 # the-agent-of-h1"])
    assert wait_until(lambda: bool(psutil.Process(made.pid).children()), SECONDS)
    yield psutil.Process(made.pid)
    for process in (*psutil.Process(made.pid).children(), psutil.Process(made.pid)):
        process.send_signal(signal.SIGCONT)
        process.kill()
    made.wait()


def low_power(sys, cgroups, tmp_path, kept=(12, 14), boot="this", freeze_seconds=SECONDS):
    (tmp_path / "boot_id").write_text(f"{boot}\n")
    record, boot_id = tmp_path / "undo.json", tmp_path / "boot_id"
    return LowPowerS0(sys, cgroups, record, lambda: set(kept), boot_id=boot_id, freeze_seconds=freeze_seconds)


def frozen(cgroups):
    return {str(file.parent.relative_to(cgroups)) for file in cgroups.rglob("cgroup.freeze") if "1" in file.read_text()}


@pytest.fixture(params=sorted(MODES))
def driver(request, sys, cgroups, tmp_path):
    if request.param == "frozen":
        request.getfixturevalue("child")
    return {
        "s3": lambda: s3(sys),
        "sz": lambda: sz(sys),
        "off": lambda: PowerOff(["true"]),
        "lowpower-s0": lambda: low_power(sys, cgroups, tmp_path),
        "frozen": lambda: Frozen(["the-agent-of-h1"]),
    }[request.param]()


def asleep(driver):
    """Return the thread that sleeps, and what wakes it."""
    woken = threading.Event()
    thread = threading.Thread(target=driver.enter, args=(woken,), daemon=True)
    thread.start()
    return thread, woken


def test_each_sleeps_until_it_is_woken(driver):
    assert driver.refusal() == ""
    assert driver.mode is MODES[driver.mode.name]
    thread, woken = asleep(driver)
    if driver.mode.wakes_by_bus:
        thread.join(0.05)
        assert thread.is_alive()
    woken.set()
    thread.join(SECONDS)
    assert not thread.is_alive()
    driver.restore()
    if driver.mode.wakes_by_bus:
        assert driver.refusal() == ""


def test_only_what_the_kernel_offers_is_there(sys):
    (sys / "power/state").write_text("freeze mem\n")
    assert "not zom" in sz(sys).refusal()
    (sys / "power/mem_sleep").write_text("[s2idle]\n")
    assert "not deep" in s3(sys).refusal()
    (sys / "power/state").unlink()
    assert "nothing" in s3(sys).refusal()


def test_s3_is_deep_sleep_and_leaves_the_choice_as_it_was(sys):
    s3(sys).enter(threading.Event())
    assert (sys / "power/state").read_text() == "mem"
    assert (sys / "power/mem_sleep").read_text() == "s2idle"


def test_a_host_that_is_not_switched_off_says_so():
    with pytest.raises(Unavailable, match="does not switch"):
        PowerOff(["false"]).enter(threading.Event())
    with pytest.raises(Unavailable, match="still there"):
        PowerOff(["true"], off_seconds=0.01).enter(threading.Event())
    assert PowerOff([]).refusal()


def test_low_power_freezes_all_but_what_serves_and_leaves_one_cpu(sys, cgroups, tmp_path):
    cpus = sys / "devices/system/cpu"
    thread, woken = asleep(low_power(sys, cgroups, tmp_path))
    assert wait_until(lambda: (cpus / "cpu0/cpuidle/state1/disable").read_text().strip() == "0", SECONDS)
    assert frozen(cgroups) == {"system/agent", "user"}
    assert [(cpus / f"cpu{number}/online").read_text().strip() for number in (1, 2)] == ["0", "0"]
    woken.set()
    thread.join(SECONDS)
    assert frozen(cgroups) == set()
    assert [(cpus / f"cpu{number}/online").read_text().strip() for number in (1, 2)] == ["1", "1"]
    assert not (tmp_path / "undo.json").exists()


@pytest.fixture
def abandoned(sys, cgroups, tmp_path):
    """What a waker that died has left asleep: all of it frozen."""
    asleep(low_power(sys, cgroups, tmp_path))
    cpu0 = sys / "devices/system/cpu/cpu0/cpuidle/state1/disable"
    assert wait_until(lambda: cpu0.read_text().strip() == "0", SECONDS)
    assert (tmp_path / "undo.json").exists()


@pytest.mark.usefixtures("abandoned")
def test_what_a_dead_waker_left_frozen_is_thawed_by_the_next(sys, cgroups, tmp_path):
    low_power(sys, cgroups, tmp_path).restore()
    assert frozen(cgroups) == set()
    assert not (tmp_path / "undo.json").exists()


@pytest.mark.usefixtures("abandoned")
def test_a_group_that_is_gone_is_not_thawed(sys, cgroups, tmp_path):
    shutil.rmtree(cgroups / "user")
    low_power(sys, cgroups, tmp_path).restore()
    assert frozen(cgroups) == set()


@pytest.mark.usefixtures("abandoned")
def test_after_a_reset_there_is_nothing_to_undo(sys, cgroups, tmp_path):
    """Its CPUs and groups are another boot's: what they are is not the dead waker's doing."""
    low_power(sys, cgroups, tmp_path, boot="another").restore()
    assert frozen(cgroups) == {"system/agent", "user"}
    assert not (tmp_path / "undo.json").exists()


def test_what_an_operator_froze_stays_frozen(sys, cgroups, tmp_path):
    (cgroups / "user/cgroup.freeze").write_text("1\n")
    thread, woken = asleep(low_power(sys, cgroups, tmp_path))
    woken.set()
    thread.join(SECONDS)
    assert frozen(cgroups) == {"user"}


def test_a_host_with_a_process_that_does_not_freeze_stays_awake(sys, cgroups, tmp_path):
    (cgroups / "user/cgroup.events").write_text("populated 1\nfrozen 0\n")
    with pytest.raises(Unavailable, match="user does not freeze"):
        low_power(sys, cgroups, tmp_path, freeze_seconds=0.01).enter(threading.Event())
    assert frozen(cgroups) == set()
    assert (sys / "devices/system/cpu/cpu1/online").read_text().strip() == "1"
    assert not (tmp_path / "undo.json").exists()


def test_a_host_that_its_watchdog_would_reset_stays_awake(sys, cgroups, tmp_path):
    state = sys / "class/watchdog/watchdog0/state"
    state.parent.mkdir(parents=True)
    state.write_text("inactive\n")
    assert low_power(sys, cgroups, tmp_path).refusal() == ""
    state.write_text("active\n")
    assert "watchdog0 would reset" in low_power(sys, cgroups, tmp_path).refusal()


def test_a_host_that_cannot_freeze_all_of_it_stays_awake(sys, cgroups, tmp_path):
    (sys / "devices/system/cpu/cpu2/online").unlink()
    (sys / "devices/system/cpu/cpu2/online").symlink_to("/proc/self/nothing")
    (cgroups / "user/cgroup.freeze").unlink()
    (cgroups / "user/cgroup.freeze").symlink_to(tmp_path)
    with pytest.raises((Unavailable, OSError)):
        low_power(sys, cgroups, tmp_path).enter(threading.Event())
    assert (cgroups / "system/agent/cgroup.freeze").read_text().strip() == "0"


def test_without_groups_nothing_is_frozen(sys, cgroups, tmp_path):
    assert "all have processes" in low_power(sys, cgroups, tmp_path, kept=(11, 12, 13, 14)).refusal()
    assert "version 2" in low_power(sys, tmp_path / "none", tmp_path).refusal()


def test_the_highest_groups_without_a_process_that_is_kept(cgroups):
    names = [str(group.relative_to(cgroups)) for group in freezable(cgroups, {12})]
    assert names == ["pond", "system/agent", "user"]
    assert [group.name for group in freezable(cgroups, set())] == ["pond", "system", "user"]


def test_the_emulation_stops_a_process_with_its_children_and_no_other(child):
    driver = Frozen(["the-agent-of-h1"])
    thread, woken = asleep(driver)
    both = [child, *child.children()]
    assert wait_until(lambda: all(item.status() == psutil.STATUS_STOPPED for item in both), SECONDS)
    woken.set()
    thread.join(SECONDS)
    assert wait_until(lambda: all(item.status() != psutil.STATUS_STOPPED for item in both), SECONDS)
    assert os.getpid() not in matching(["."])


def test_the_emulation_names_its_processes():
    assert "frozen_commands" in Frozen([]).refusal()
    assert "no process" in Frozen(["no process is called so \\d{40}"]).refusal()


def test_all_settings_or_none(tmp_path):
    good, bad = Setting(tmp_path / "good", "1"), Setting(Path("/proc/self/nothing"), "1")
    good.path.write_text("0")
    with pytest.raises(Unavailable):
        change([good, bad])
    assert good.path.read_text() == "0"
