"""A data plane and a stand-in guest, as processes that tests kill."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pondstack_rack.wait import wait_until

GUEST = "6f1c2d1e-0000-4000-8000-000000000001"
BLOCK = "6f1c2d1e-0000-4000-8000-000000000002"
MEMORY = "ram-node0"
REST_US = 300
"""Of guests that tests wait beside: they leave the cores to what is tested, and to tests that run meanwhile."""
EMULATED_REST_US = 3000
"""Of guests that QEMU emulates."""
DEADLINE_SECONDS = 60.0
"""For what must happen at some time, on however busy a machine."""

_PDEATHSIG = 1  # PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """In a child: end when the process of the tests is killed."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def large_files() -> None:
    """In a child: end with its parent, and lift the limit that the tests set for files."""
    end_with_parent()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


class Guest(Protocol):
    """A process whose memory is paged."""

    @property
    def pid(self) -> int:
        """Of its process."""


class RefusedError(Exception):
    """The data plane did not do what it was asked."""


class StandinGuest:
    """A process whose threads write and verify the words of a memfd; see standin_guest.c."""

    def __init__(
        self,
        program: Path,
        mib: int,
        threads: int = 2,
        seed: int = 1,
        pattern: str = "random",
        works: bool = True,
        more: tuple[str, ...] = (),
        versions: Path | None = None,
        rest_us: int = 0,
    ) -> None:
        """`more`: words at the end of its command line, which it passes over; `versions`: by which guests say to each
        other what they have written; `rest_us`: of each thread after 16 accesses."""
        self.process = subprocess.Popen(
            [str(program), MEMORY, str(mib), str(threads), str(seed), pattern, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ({"STANDIN_VERSIONS": str(versions)} if versions else {}) | {"STANDIN_REST": str(rest_us)},
            preexec_fn=end_with_parent,
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "ready\n"
        if works:
            self.begin()

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    def begin(self) -> None:
        """Have it work."""
        assert self.process.stdin
        print("g", file=self.process.stdin, flush=True)

    def stop(self) -> None:
        """Have it work no more, and wait for that."""
        assert self.process.stdin
        assert self.process.stdout
        print("s", file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "stopped\n"

    def exchange(self, verb: str) -> None:
        """Have it write down what it has written, "e", or know what another one has, "i"."""
        assert self.process.stdin
        assert self.process.stdout
        print(verb, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "exchanged\n"

    def finish(self) -> dict[str, int]:
        """Have it verify all of its memory; what it counted."""
        out, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        found: dict[str, int] = json.loads(out.splitlines()[-1])
        return found

    def kill(self) -> None:
        """End it at once; idempotent."""
        self.process.kill()
        self.process.communicate()


class DataPlane:
    """One of a folder, which may be started again."""

    def __init__(self, program: Path, folder: Path, *client: str) -> None:
        """`client`: a user who may ask it besides root, and the folder of its mirrors."""
        self.program, self.folder, self.client = program, folder, client
        self.process: subprocess.Popen[bytes] | None = None
        self.large_files = False
        """Whether its files may be larger than those of the tests."""

    def start(self, **environment: str) -> None:
        """Start it, and go on with what a former process served."""
        with (self.folder.parent / "data-plane.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.program), "serve", str(self.folder), *self.client],
                stderr=log,
                env=os.environ | environment,
                preexec_fn=large_files if self.large_files else end_with_parent,
            )

    def await_ready(self) -> None:
        """Wait until it answers; fails when it ends first."""
        assert wait_until(lambda: self._answers() or not self.runs, DEADLINE_SECONDS, 0.01), self.log()
        assert self.runs, self.log()

    def _answers(self) -> bool:
        with contextlib.suppress(RefusedError):
            self.ask(verb="view")
            return True
        return False

    def log(self) -> str:
        """Return what it has printed."""
        return (self.folder.parent / "data-plane.log").read_text()

    @property
    def runs(self) -> bool:
        """Whether its process lives."""
        return self.process is not None and self.process.poll() is None

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request, over its socket as its program's own `ask` does; raises RefusedError."""
        try:
            with connect(self) as link:
                answer = send(link, json.dumps(request).encode())
        except (OSError, ValueError) as error:  # it ended before it had answered, or nobody is there
            raise RefusedError(repr(error)) from error
        if "result" not in answer:
            raise RefusedError(json.dumps(answer))
        result: Mapping[str, Any] = answer["result"]
        return dict(result)

    def attach(self, guest: Guest, mirror: Path, limit_mib: int, /, **settings: Any) -> dict[str, Any]:
        """Attach a guest."""
        named = {"guest": GUEST, "pid": guest.pid, "memory": MEMORY, "mirror": str(mirror), "limit_mib": limit_mib}
        return self.ask(verb="attach", **(named | settings))

    def view(self) -> dict[str, Any]:
        """Return what it tells of the guest."""
        return self.ask(verb="view", guest=GUEST)

    def detach(self) -> None:
        """Have all pages come home, and wait for it."""
        self.ask(verb="detach", guest=GUEST)
        assert wait_until(lambda: not self.ask(verb="view")["guests"], DEADLINE_SECONDS), self.view()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process
        self.process.send_signal(number)

    def await_end(self) -> int:
        """Wait for its end; how it ended."""
        assert self.process
        return self.process.wait(DEADLINE_SECONDS)

    def kill(self) -> None:
        """Kill it with -9."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it as systemd would, and see that no sanitizer found anything."""
        if self.runs:
            self.signal(signal.SIGTERM)
            assert self.await_end() == 0, self.log()
        assert "Sanitizer" not in self.log(), self.log()


def connect(plane: DataPlane) -> socket.socket:
    """Connect to its socket."""
    link = socket.socket(socket.AF_UNIX)
    try:
        link.settimeout(DEADLINE_SECONDS)
        link.connect(str(plane.folder / "control.sock"))
    except BaseException:
        link.close()
        raise
    return link


def send(link: socket.socket, line: bytes) -> dict[str, Any]:
    """Send a line; its answer."""
    link.sendall(line + b"\n")
    with link.makefile() as answers:
        found: dict[str, Any] = json.loads(answers.readline())
    return found


class BlockPlane(DataPlane):
    """One whose tests export a block device, of which a keeper outlives it."""

    @property
    def mirror(self) -> Path:
        """Of the device."""
        return self.folder.parent / "mirror"

    @property
    def socket(self) -> Path:
        """Of the device."""
        return self.folder.parent / "nbd.sock"

    def export(self, mib: int, /, **settings: Any) -> dict[str, Any]:
        """Export the device."""
        named = {"block": BLOCK, "mib": mib, "mirror": str(self.mirror), "socket": str(self.socket), "user": 0}
        return self.ask(verb="export", **(named | settings))

    def device(self) -> dict[str, Any]:
        """Return what it tells of the device."""
        return self.ask(verb="view", block=BLOCK)

    def restart(self) -> None:
        """Kill it with -9, and start it again."""
        self.kill()
        self.start()
        self.await_ready()

    @contextlib.contextmanager
    def failing_mirror(self, at_bytes: int) -> Iterator[None]:
        """Have the kernel refuse it to write to files behind so many bytes."""
        assert self.process
        before = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (at_bytes, before[1]))
        try:
            yield
        finally:
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, before)

    def keepers(self) -> list[int]:
        """Return the processes that keep something for it."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended
                words = path.read_bytes().split(b"\0")
                if words[1:2] == [b"keep"] and words[2].startswith(bytes(self.folder)):
                    found.append(int(path.parent.name))
        return found

    def close(self) -> None:
        """End it, see that no sanitizer found anything, and end the keepers."""
        try:
            self.stop()
        finally:
            for pid in self.keepers():
                os.kill(pid, signal.SIGKILL)
