"""What a test does in a host: run commands, copy files, start processes, call objects that live there."""

import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pondstack.domain.errors import PondError
from pondstack_rack.wait import Deadline

from . import values
from .frames import Client, Frames, Header, RequestFailed, StreamClosed

DEADLINE_SECONDS = 540.0
"""For a command or a call in an emulated host: gigabytes of memory under TCG, less than a test may take."""

RemoteDied = StreamClosed
"""What a call raises when its process was killed or its host went down before the answer."""


class CommandFailed(Exception):
    """A command of which the test expected success ended otherwise."""


@dataclass(frozen=True)
class Completed:
    """An ended command."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    def check(self) -> "Completed":
        """Return itself; raises CommandFailed with all that was said."""
        if self.returncode:
            raise CommandFailed(f"{' '.join(self.argv)}: exit {self.returncode}\n{self.stdout}{self.stderr}")
        return self


class Channel:
    """The test's end of one host's channel. Any thread may use it, several at once."""

    def __init__(self, socket: socket.socket, tail: Callable[[], str]) -> None:
        """`tail()` is the end of the host's console, for who waits in vain."""
        self._client = Client(Frames(socket.detach()), tail)

    @property
    def hello(self) -> Any:
        """The queue in which the host says that it is up."""
        return self._client.hello

    def ended(self) -> None:
        """Wait until everything that was under way has been told that the host is gone."""
        self._client.ended()

    def run(
        self,
        argv: Sequence[str],
        *,
        input: str | bytes = b"",
        timeout: float = DEADLINE_SECONDS,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> Completed:
        """Run a command to its end, with a time limit in seconds; raises TimeoutError with what it had said."""
        data = input.encode() if isinstance(input, str) else input
        answer, blob = self._client.request(
            "run", data, within=timeout + 30, argv=list(argv), env=dict(env or {}), cwd=cwd, timeout=timeout
        )
        out, err = blob[: answer["stdout"]].decode(errors="replace"), blob[answer["stdout"] :].decode(errors="replace")
        if answer.get("timeout"):
            raise TimeoutError(f"{' '.join(argv)}: still running after {timeout} s\n{out}{err}")
        return Completed(tuple(argv), answer["returncode"], out, err)

    def put(self, path: str, data: str | bytes, *, mode: int = 0o644) -> None:
        """Write a file of the host; its folder is made."""
        blob = data.encode() if isinstance(data, str) else data
        self._client.request("put", blob, within=DEADLINE_SECONDS, path=path, mode=mode)

    def get(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        """Read a file of the host, from `offset`, at most `size` bytes."""
        return self._client.request("get", within=DEADLINE_SECONDS, path=path, offset=offset, size=size)[1]

    def wait_for_path(self, path: str, timeout: float = 60.0) -> None:
        """Wait until a path is there: drivers probe their devices when modprobe is back; raises TimeoutError."""
        script = f'i=0; until [ -e "$0" ]; do [ $((i += 1)) -lt {int(timeout * 10)} ] || exit 1; sleep 0.1; done'
        if self.run(["sh", "-c", script, path], timeout=timeout * 2 + 10).returncode:
            raise TimeoutError(f"no {path} within {timeout} s")

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str = "/") -> "Started":
        """Start a command and leave it running."""
        answer, _ = self._client.request(
            "start", within=DEADLINE_SECONDS, argv=list(argv), env=dict(env or {}), cwd=cwd
        )
        return Started(self, tuple(argv), answer["pid"], answer["output"])

    def remote(self, factory: str, *, environment: Mapping[str, str] | None = None, **kwargs: Any) -> Any:
        """Make an object in a process of its own in the host, by "module:name" of something callable.

        The result passes method calls on. Errors of pondstack come back as what they were, others as RemoteError.
        """
        try:
            answer, _ = self._client.request(
                "make",
                within=DEADLINE_SECONDS,
                factory=factory,
                kwargs=values.encode(kwargs),
                env=dict(environment or {}),
            )
        except RequestFailed as error:
            _raise(error.header)
        return Remote(Started(self, (factory,), answer["pid"], ""))

    def request(self, operation: str, blob: bytes = b"", *, within: float = DEADLINE_SECONDS, **header: Any) -> Header:
        """Ask the host's runner for one of its operations; raises RequestFailed, StreamClosed, TimeoutError."""
        return self._client.request(operation, blob, within=within, **header)[0]


@dataclass(frozen=True)
class Started:
    """A process in a host."""

    channel: Channel = field(repr=False)
    argv: tuple[str, ...]
    pid: int
    output_path: str

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; after SIGKILL its end is waited for."""
        self.channel.request("signal", pid=self.pid, signal=int(number))
        if number == signal.SIGKILL:
            self.wait()

    def wait(self, timeout: float = DEADLINE_SECONDS) -> int:
        """Return its exit code, negative for a signal; raises TimeoutError after `timeout` seconds."""
        answer = self.channel.request("wait", pid=self.pid, timeout=timeout, within=timeout + 30)
        if "returncode" not in answer:
            raise TimeoutError(f"{' '.join(self.argv)}: still running after {timeout} s\n{self.output()}")
        return int(answer["returncode"])

    def running(self) -> bool:
        """Tell whether it runs."""
        return "returncode" not in self.channel.request("wait", pid=self.pid, timeout=0)

    def write(self, data: str | bytes = b"", *, close: bool = False) -> None:
        """Write to its standard input, and close that on request."""
        blob = data.encode() if isinstance(data, str) else data
        self.channel.request("stdin", blob, pid=self.pid, close=close)

    def output(self) -> str:
        """Return what it has written so far, errors included."""
        return self.channel.get(self.output_path).decode(errors="replace") if self.output_path else ""

    def wait_for(self, text: str, timeout: float = DEADLINE_SECONDS) -> str:
        """Wait until it has written `text`, return all output; raises TimeoutError, CommandFailed when it ended."""
        deadline = Deadline(timeout)
        while True:
            running, output = self.running(), self.output()
            if text in output:
                return output
            if not running:
                raise CommandFailed(f"{' '.join(self.argv)} ended with {self.wait()} without {text!r}\n{output}")
            if deadline.over:
                raise TimeoutError(f"{' '.join(self.argv)}: no {text!r} within {timeout} s\n{output}")
            deadline.pause()


class RemoteError(Exception):
    """An error in a host that is none of pondstack's; the text has the traceback from there."""


class Remote:
    """Stands for an object in a host: each attribute is a method that runs there (or an attribute, when called).

    Names with an underscore are this side's: `_process` is the process that the object lives in.
    """

    def __init__(self, process: Started) -> None:
        self._process = process

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                answer = self._process.channel.request(
                    "call",
                    pid=self._process.pid,
                    method=name,
                    args=values.encode(list(args)),
                    kwargs=values.encode(kwargs),
                )
            except RequestFailed as error:
                _raise(error.header)
            return values.decode(answer["result"])

        return call

    def _sigkill(self) -> None:
        """Kill the process as a crash would; whoever waits for an answer gets RemoteDied."""
        self._process.kill()


def _raise(header: Header) -> NoReturn:
    """Raise an answer's error: PondErrors as the class that they were, with their text."""
    module, _, _ = header["class"].partition(":")
    if module.startswith("pondstack"):
        cls = values.named(header["class"])
        if isinstance(cls, type) and issubclass(cls, PondError):
            raise cls(header["message"])
    if header["class"].endswith(":StreamClosed"):
        raise RemoteDied(header["message"])
    raise RemoteError(f"{header['error']}\n{header['traceback']}")
