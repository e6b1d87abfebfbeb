"""The services run within the fences of their units: systemd starts them, in a container over this machine's files.

What a fence takes is seen only where it stands: a capability, a system call, a folder, memory that is to be executable.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rack.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
NSPAWN = ("systemd-nspawn", "--boot", "--register=no", "--keep-unit", "--capability=all", "--console=pipe")
"""Without CAP_SYS_RESOURCE, which containers of CI lack as well; perf_event_open is what nspawn itself forbids."""
LIMITS = ("--drop-capability=CAP_SYS_RESOURCE", "--system-call-filter=perf_event_open", "--private-network")
AGENT = """[DEFAULT]
transport_url = fake://
host = host1
[agent]
controller_timeout_seconds = 1
[emulated]
device_paths = /srv/pond/pool0
"""
CONTROLLER = """[DEFAULT]
transport_url = fake://
[database]
connection = sqlite:////var/lib/pondstack/ledger.sqlite
[controller]
name = c1
pool_devices = pool0=emulated:/srv/pond/pool0
[api]
auth_strategy = noauth2
"""
PREPARE = """set -e
useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin pondstack
install -d -o pondstack -m 700 /srv/pond /var/lib/pondstack
chgrp pondstack /etc/pondstack/pondstack.conf
as() { setpriv --reuid pondstack --regid pondstack --clear-groups "$@"; }
as /opt/pondstack/bin/pondstack-manage device create /srv/pond/pool0 --slices 4 --slice-mib 1 --serial pool0
as /opt/pondstack/bin/pondstack-manage --config-file /etc/pondstack/pondstack.conf db sync
ip link set lo up
"""
TESTS_UNIT = """[Service]
Type=oneshot
Restart=no
WorkingDirectory={root}
Environment=PATH=/opt/pondstack/bin:/usr/bin:/usr/sbin:/bin PYTHONDONTWRITEBYTECODE=1
Environment=SEPARATED_USER=pondstack SEPARATED_STATE=/var/lib/pondstack/agent
ExecStart=
ExecStart=!/bin/sh -c "python -m pytest -p no:cacheprovider -q -n0 {tests} >/var/log/tests.log 2>&1"
"""
TESTS = (
    "agent/tests/privilege/test_separated.py",
    "agent/tests/telemetry/test_untouched.py::test_pool_memory_is_a_range_of_a_devices_file",
    "agent/tests/telemetry/test_counters.py::test_hardware_that_is_missing_is_said",
    "agent/tests/mitigation/test_privileged_arguments.py::test_a_guest_and_one_that_has_ended_are_not_refused",
)
"""Of what the agent does to other processes."""

needs = [
    pytest.mark.night,  # it needs more of its machine than other tests: a container with a systemd, over all files
    pytest.mark.skipif(os.geteuid() != 0, reason="starts a container, which needs root"),
    pytest.mark.skipif(shutil.which("systemd-nspawn") is None, reason="systemd-nspawn is not installed"),
    pytest.mark.skipif(not Path("/lib/systemd/systemd").exists(), reason="systemd is not installed"),
    pytest.mark.skipif(ROOT.parts[1] in ("home", "root", "tmp"), reason="the units do not see homes and /tmp"),
]
pytestmark = needs


class Container:
    """This machine's files with a systemd of their own; what changes is in memory."""

    def __init__(self, folder: Path) -> None:
        self.root, self._folder = folder / "root", folder
        self._process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        for name in ("root", "upper", "work"):
            (self._folder / name).mkdir()
        layers = f"lowerdir=/,upperdir={self._folder}/upper,workdir={self._folder}/work"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(self.root)], check=True)
        self._install()
        command = [*NSPAWN, *LIMITS, "--link-journal=no", f"--directory={self.root}", f"--bind-ro={ROOT}"]
        environment = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        with (self._folder / "console").open("wb") as console:
            self._process = subprocess.Popen(
                [*command, "systemd.unit=basic.target"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=environment,
            )
        assert wait_until(lambda: "running" in self.run("systemctl", "is-system-running").stdout, SECONDS), self.console

    @property
    def console(self) -> str:
        return (self._folder / "console").read_text(errors="replace")

    @property
    def _init(self) -> str:
        assert self._process is not None
        path = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        found: list[str] = []
        assert wait_until(lambda: bool(found.extend(path.read_text().split()) or found), SECONDS), self.console
        return found[0]

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in it."""
        inside = ["nsenter", "-t", self._init, "-m", "-p", "-n", "-u", "-i", "-C", *command]
        return subprocess.run(inside, capture_output=True, text=True, check=False)

    def start(self, unit: str) -> None:
        done = self.run("systemctl", "start", unit)
        log = self.run("journalctl", "--no-pager", "-n", "50", "-u", unit).stdout
        assert done.returncode == 0, done.stderr + log

    def end(self) -> None:
        if self._process is not None:
            # Its first process, and with it all others: they outlive systemd-nspawn.
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(self._init), signal.SIGKILL)
            self._process.wait(30)
        subprocess.run(["umount", str(self.root)], check=False)

    def _install(self) -> None:
        etc, opt = self.root / "etc", self.root / "opt/pondstack"
        shutil.rmtree(opt, ignore_errors=True)
        opt.unlink(missing_ok=True)
        opt.symlink_to(sys.prefix)
        (etc / "pondstack").mkdir(exist_ok=True)
        for name, text in {"pondstack-agent.conf": AGENT, "pondstack.conf": CONTROLLER}.items():
            (etc / "pondstack" / name).write_text(text)
        shutil.copy(ROOT / "etc/deploy/pondstack-uwsgi.ini", etc / "pondstack")
        for unit in (ROOT / "etc/deploy").glob("*.service"):
            shutil.copy(unit, etc / "systemd/system")
        tests = etc / "systemd/system/agent-tests.service"
        shutil.copy(ROOT / "etc/deploy/pondstack-agent.service", tests)
        (etc / "systemd/system/agent-tests.service.d").mkdir()
        text = TESTS_UNIT.format(root=ROOT, tests=" ".join(TESTS))
        (etc / "systemd/system/agent-tests.service.d/tests.conf").write_text(text)


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    folder = Path(tempfile.mkdtemp(prefix="units-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "units", str(folder)], check=True)
    made = Container(folder)
    try:
        made.boot()
        done = made.run("bash", "-c", PREPARE)
        assert done.returncode == 0, done.stdout + done.stderr
        yield made
    finally:
        made.end()
        subprocess.run(["umount", str(folder)], check=False)
        folder.rmdir()


def test_the_agent_serves_as_its_user_and_a_few_processes_have_capabilities(container: Container) -> None:
    """In folders that a former release's agent has left, which was root."""
    container.run("install", "-d", "-m", "700", "/var/lib/pondstack/agent", "/var/lib/pondstack/agent/marks")
    container.run("chown", "root:", "/var/lib/pondstack")
    container.start("pondstack-agent")  # Type=notify: it serves
    control = container.run("systemctl", "show", "-p", "ControlGroup", "--value", "pondstack-agent").stdout.strip()
    pids = container.run("cat", f"/sys/fs/cgroup{control}/cgroup.procs").stdout.split()
    user = container.run("id", "-u", "pondstack").stdout.strip()
    seen: dict[str, tuple[str, set[int]]] = {}
    for pid in pids:
        lines = container.run("cat", f"/proc/{pid}/status").stdout.splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        mask = int(status["CapEff"], 16)
        name = status["Name"] if status["Name"].startswith("pond-") else "agent"
        seen[name] = (status["Uid"].split()[0], {number for number in range(64) if mask >> number & 1})
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    dac_override, sys_ptrace, sys_nice, perfmon, checkpoint_restore = 1, 19, 23, 38, 40
    assert seen == {
        "agent": (user, set()),
        "pond-host": ("0", {sys_ptrace}),
        "pond-mitigation": ("0", {sys_nice, sys_ptrace}),
        "pond-libvirt": ("0", set()),
        "pond-tiering": ("0", set()),
        "pond-telemetry": ("0", {dac_override, sys_ptrace, perfmon, checkpoint_restore}),
    }
    for folder in ("", "agent", "agent/marks"):
        assert container.run("stat", "-c", "%U %a", f"/var/lib/pondstack/{folder}").stdout.strip() == "pondstack 700"


def test_controller_and_api_serve(container: Container) -> None:
    container.start("pondstack-controller")
    container.start("pondstack-api")
    health = ("curl", "-s", "http://127.0.0.1:8780/healthcheck")
    assert wait_until(lambda: "leader: OK" in container.run(*health).stdout, SECONDS), container.run(*health).stdout
    assert "database" not in container.run(*health).stdout.replace("database: OK", "")


@pytest.mark.faults
def test_the_agent_can_do_within_its_fence_what_its_tests_do(container: Container) -> None:
    done = container.run("systemctl", "start", "agent-tests")
    log = container.run("cat", "/var/log/tests.log").stdout
    assert done.returncode == 0, log[-4000:]
    assert " passed" in log
