"""QEMU's monitor when it goes wrong; tests/hardware/test_dcd.py has the real one."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from pondstack.devices.fabric import ByteRange
from pondstack.devices.heads import Head, machine_id
from pondstack.devices.qmp import Monitor, NobodyListens, Refused
from pondstack.devices.qmp_fabric import QmpFabric
from pondstack.domain.errors import DeviceFailed, HostUnusable, InUse, PondError

GREETING = b'{"QMP": {"version": {}, "capabilities": []}}\n'
DONE = b'{"return": {}}\n'
EVENT = b'{"event": "RESET", "data": {}, "timestamp": {}}\n'
RANGE = ByteRange(0, 2**21)


def refusal(text: str, kind: str = "GenericError") -> bytes:
    return json.dumps({"error": {"class": kind, "desc": text}}).encode() + b"\n"


@contextmanager
def monitor_that_says(path: Path, *lines: bytes, hang: bool = False) -> Iterator[list[str]]:
    """A monitor that greets with the first line, answers each command with the next, and then closes (or hangs)."""
    heard: list[str] = []
    done = threading.Event()

    def serve() -> None:
        client, _address = server.accept()
        with client, client.makefile("rb") as commands:
            client.sendall(lines[0])
            for line in lines[1:]:
                command = commands.readline()
                if not command:
                    return
                heard.append(json.loads(command)["execute"])
                client.sendall(line)
            if hang:
                done.wait(30)

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            done.set()
            thread.join(30)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "qmp"


def fabric(path: Path, seconds: float = 10.0) -> QmpFabric:
    return QmpFabric({"host1": Head(str(path), "pool0", machine_id())}, answer_seconds=seconds)


def test_events_between_a_command_and_its_answer_are_passed_over(path: Path) -> None:
    with monitor_that_says(path, GREETING, EVENT + DONE, EVENT + EVENT + b'{"return": [1]}\n') as heard:
        with Monitor(str(path), 10) as monitor:
            assert monitor.execute("query-something") == [1]
    assert heard == ["qmp_capabilities", "query-something"]


@pytest.mark.parametrize(
    "lines",
    [
        (b"",),
        (b'{"QMP": ',),
        (b"login:\n",),
        (b"[]\n",),
        (DONE,),
        (GREETING,),
        (GREETING, refusal("no", "CommandNotFound")),
        (GREETING, DONE, b'{"retu'),
        (GREETING, DONE, EVENT),
        (GREETING, DONE, b"{}\n"),
        (GREETING, DONE, b'{"error": "text"}\n'),
    ],
)
def test_a_monitor_that_breaks_off_or_talks_nonsense_has_failed(path: Path, lines: Sequence[bytes]) -> None:
    with monitor_that_says(path, *lines):
        with pytest.raises(DeviceFailed, match=f"{path} does not answer"):
            fabric(path).add("host1", [RANGE], tag="a")


@pytest.mark.parametrize(
    "lines", [(b"",), (GREETING,), (GREETING, b""), (GREETING, DONE, b""), (GREETING, DONE, EVENT)]
)
def test_a_late_answer_is_none(path: Path, lines: Sequence[bytes]) -> None:
    with monitor_that_says(path, *lines, hang=True):
        with pytest.raises(DeviceFailed, match="TimeoutError"):
            fabric(path, 0.1).add("host1", [RANGE], tag="a")


def test_a_full_queue_has_the_same_limit(path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(path))
        server.listen(0)
        stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))
        with pytest.raises(DeviceFailed, match="one at a time"):
            fabric(path, 0.1).states("host1", [RANGE])


def test_no_socket_proves_nothing(path: Path) -> None:
    with pytest.raises(DeviceFailed, match="FileNotFoundError"):
        fabric(path).states("host1", [RANGE])


def test_a_socket_without_a_listener_is_told_apart(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    with pytest.raises(NobodyListens), Monitor(str(path), 10):
        pass


def test_refusals_keep_their_class_and_the_connection(path: Path) -> None:
    with monitor_that_says(path, GREETING, DONE, refusal("no such thing", "DeviceNotFound"), DONE):
        with Monitor(str(path), 10) as monitor:
            with pytest.raises(Refused, match="no such thing") as caught:
                monitor.execute("anything")
            assert caught.value.kind == "DeviceNotFound"
            monitor.execute("anything")


ADD: Callable[[QmpFabric], object] = lambda found: found.add("host1", [RANGE], tag="a")  # noqa: E731
RELEASE: Callable[[QmpFabric], object] = lambda found: found.release("host1", [RANGE])  # noqa: E731
STATES: Callable[[QmpFabric], object] = lambda found: found.states("host1", [RANGE])  # noqa: E731


@pytest.mark.parametrize(
    ("call", "answer", "error", "text"),
    [
        (ADD, refusal("The command is unknown", "CommandNotFound"), HostUnusable, "9.1 or newer"),
        (ADD, refusal("cannot add DPA again while still pending"), InUse, "2097152 bytes at 0"),
        (ADD, refusal("cannot add DPA already accessible to the same LD"), InUse, "2097152 bytes at 0"),
        (ADD, refusal("a text that no QEMU has said yet"), HostUnusable, "no QEMU has said yet"),
        (RELEASE, refusal("a text that no QEMU has said yet"), DeviceFailed, "no QEMU has said yet"),
        (STATES, refusal("Device 'pool0' not found", "DeviceNotFound"), DeviceFailed, "DeviceNotFound"),
        (STATES, refusal("a text that no QEMU has said yet"), DeviceFailed, "no QEMU has said yet"),
        (STATES, DONE, DeviceFailed, "twice"),
    ],
)
def test_what_qemu_refuses(
    path: Path, call: Callable[[QmpFabric], object], answer: bytes, error: type[PondError], text: str
) -> None:
    with monitor_that_says(path, GREETING, DONE, answer):
        with pytest.raises(error, match=text):
            call(fabric(path))


@pytest.mark.parametrize("call", [RELEASE, STATES])
def test_a_host_that_is_not_listed_cannot_be_asked(call: Callable[[QmpFabric], object]) -> None:
    with pytest.raises(DeviceFailed, match="device head"):
        call(QmpFabric({}))
