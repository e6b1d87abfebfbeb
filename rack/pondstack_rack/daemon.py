"""One process that outlives its starter, known by a pid file: started, awaited, stopped and killed by pid only."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from pondstack_rack.wait import wait_until

STOP_SECONDS = 60.0
START_SECONDS = 120.0
LOG_TAIL_LINES = 15
SAME_SECONDS = 0.05
"""Two processes of one pid are born farther apart; the kernel counts hundredths."""


class DaemonFailed(RuntimeError):
    """A process did not start, become ready or end in time; the text names it and its log."""


def recorded(pid_file: Path) -> psutil.Process | None:
    """Return the live process of a pid file; None when it ended or the pid belongs to another process by now."""
    try:
        record = json.loads(pid_file.read_text())
        process = psutil.Process(record["pid"])
        # A pid is reused sooner or later; the time of birth tells the processes apart.
        same = abs(_since_boot(_birth(process)) - _since_boot(record)) < SAME_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, ValueError, KeyError, psutil.NoSuchProcess):
        return None


def _birth(process: psutil.Process) -> dict[str, float]:
    """Return when a process was born, and the boot that the kernel counts from: seconds since the epoch.

    Both move when somebody sets the clock: NTP, or a hypervisor that resumes its guest. Their difference does not.
    """
    return {"create_time": process.create_time(), "boot_time": psutil.boot_time()}


def _since_boot(birth: Mapping[str, float]) -> float:
    # A former release wrote no boot time.
    return birth["create_time"] - birth.get("boot_time", psutil.boot_time())


def signal_process(process: psutil.Process, number: int) -> None:
    """Send a signal; a process that ended meanwhile is no error."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def kill_tree(process: psutil.Process, timeout_seconds: float = STOP_SECONDS) -> list[psutil.Process]:
    """SIGKILL a process and all that it started; return those that are still there when the time is over."""
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    for member in family:
        signal_process(member, signal.SIGKILL)
    # Zombies are gone but for their parent's notice.
    wait_until(lambda: not any(_lives(member) for member in family), timeout_seconds, 0.02)
    return [member for member in family if _lives(member)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Daemon:
    """A program in a session of its own, with `<name>.pid` and `<name>.log` in one directory.

    `ready` is a real condition (a port that speaks its protocol, not just an open one) that start() waits for. The
    object is a handle: another object with the same directory and name, in another process, finds the same daemon.
    `env` replaces the whole environment.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        directory: Path,
        *,
        env: Mapping[str, str] | None = None,
        ready: Callable[[], bool] | None = None,
        stop_signal: int = signal.SIGTERM,
        start_seconds: float = START_SECONDS,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self.name = name
        self.argv = [str(word) for word in argv]
        self.pid_file = directory / f"{name}.pid"
        self.log_file = directory / f"{name}.log"
        self._env = dict(os.environ if env is None else env)
        self._ready = ready
        self._stop_signal = stop_signal
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> psutil.Process | None:
        """The live process, or None."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        return recorded(self.pid_file)

    @property
    def running(self) -> bool:
        """Whether the process lives; says nothing of its readiness."""
        return self.process is not None

    @property
    def pid(self) -> int | None:
        """The pid of the live process, or None."""
        process = self.process
        return process.pid if process else None

    def launch(self) -> bool:
        """Start the process without waiting for readiness; return False when it runs already."""
        if self.running:
            return False
        self.pid_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self._child = subprocess.Popen(
                self.argv,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
        self._record(self._child.pid)
        return True

    def _record(self, pid: int) -> None:
        try:
            birth = _birth(psutil.Process(pid))
        except psutil.NoSuchProcess:
            birth = {"create_time": 0.0}
        temporary = self.pid_file.with_suffix(".pid.new")
        temporary.write_text(json.dumps({"pid": pid, **birth, "argv": self.argv[:3]}))
        temporary.replace(self.pid_file)

    def wait_ready(self) -> None:
        """Block until ready; DaemonFailed when the process ended or the time is over."""
        settled = wait_until(lambda: not self.running or self._is_ready(), self._start_seconds)
        if not self.running:
            raise DaemonFailed(f"{self.name} ended while it started{self._log_hint()}")
        if not settled:
            raise DaemonFailed(f"{self.name} was not ready within {self._start_seconds:.0f} s{self._log_hint()}")

    def start(self) -> None:
        """Launch and wait until ready; on a running daemon only check that it is ready."""
        self.launch()
        self.wait_ready()

    def stop(self) -> None:
        """Ask the process to end and wait for its pid to go; what does not obey in time is killed."""
        process = self.process
        if process is not None:
            signal_process(process, self._stop_signal)
            if not wait_until(lambda: not self.running, self._stop_seconds):
                self.kill()
        self.pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """SIGKILL the process and its children, as a crash would, and wait for the pid to go."""
        process = self.process
        if process is not None and kill_tree(process, self._stop_seconds):
            raise DaemonFailed(f"{self.name} (pid {process.pid}) survives SIGKILL{self._log_hint()}")
        self.pid_file.unlink(missing_ok=True)

    def restart(self) -> None:
        """Stop, then start."""
        self.stop()
        self.start()

    def _is_ready(self) -> bool:
        return self._ready is None or self._ready()

    def _log_hint(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        tail = "".join(f"\n    {line}" for line in lines[-LOG_TAIL_LINES:])
        return f"; log: {self.log_file}{tail}"
