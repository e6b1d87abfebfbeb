"""The QEMU of a guest that comes tells the agent that expects it, and nobody else."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pondstack_agent.qemu import arrival_door
from pondstack_agent.qemu.monitor import Monitor, MonitorError

VM = "6f1c3f8e-54b5-4a1c-9d2b-0d8a3a1f0001"
HOST = f"host-{os.getpid()}"
SECONDS = 30.0


def test_only_where_it_is_expected() -> None:
    assert arrival_door.knock(HOST, VM, os.getuid()) is None
    with arrival_door.listen(HOST, VM) as listener:
        with pytest.raises(OSError, match="in use"):
            arrival_door.listen(HOST, VM)
        link = arrival_door.knock(HOST, VM, os.getuid())
        assert link
        with link, listener.accept()[0] as came:
            assert arrival_door.peer(came) == (os.getpid(), os.getuid())
        assert arrival_door.knock("another", VM, os.getuid()) is None
        assert arrival_door.knock(HOST, VM.replace("1", "2"), os.getuid()) is None


def test_somebody_else_who_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any process may take an abstract name."""
    with arrival_door.listen(HOST, VM):
        monkeypatch.setattr(arrival_door, "peer", lambda _link: (4711, os.getuid() + 1))
        assert arrival_door.knock(HOST, VM, os.getuid()) is None


@pytest.mark.parametrize("incoming", [True, False])
def test_the_process_that_becomes_qemu(tmp_path: Path, *, incoming: bool) -> None:
    """It has the connection as a monitor, where it waits for a migration."""
    backend = {"qom-type": "memory-backend-memfd", "id": "ram-node0", "size": 2**20, "share": True}
    words = ["-uuid", VM, "-object", json.dumps(backend), *(["-incoming", "defer"] if incoming else [])]
    head = [sys.executable, "-m", "pondstack_agent.qemu.wrapper", "--state-dir", str(tmp_path), "--host", HOST]
    with arrival_door.listen(HOST, VM) as listener:
        command = [*head, "--qemu", "/bin/sh", "--", "-c", 'for word in "$@"; do echo "$word"; done', "qemu", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told = done.stdout.splitlines()
        assert ("chardev=pondstack,mode=control" in told) == incoming
        assert any(word.startswith("socket,id=pondstack,fd=") for word in told) == incoming
        listener.setblocking(False)
        if incoming:
            listener.accept()[0].close()
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_monitor_that_answers_nothing_to_go_by() -> None:
    @contextmanager
    def talk(*lines: object) -> Iterator[Monitor]:
        here, there = socket.socketpair()
        with there:
            there.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            there.shutdown(socket.SHUT_WR)
            with Monitor(here, SECONDS) as monitor:
                yield monitor

    greeting, done = {"QMP": {}}, {"return": {}}
    for lines in ((greeting,), ([],)):
        with pytest.raises(MonitorError, match="does not answer"), talk(*lines):
            pass
    refusal = {"error": {"class": "GenericError", "desc": "not now"}}
    with talk(greeting, done, {"event": "RESUME"}, refusal) as monitor:
        with pytest.raises(MonitorError, match="refuses migrate-set-capabilities: not now"):
            monitor.ignore_shared(on=True)
    with talk(greeting, done, {"return": {"status": "failed"}}) as monitor:
        with pytest.raises(MonitorError, match="failed"):
            monitor.has_come()
    with talk(greeting, done, {"return": {"status": "completed"}}) as monitor:
        assert monitor.has_come()
    with talk(greeting, done, {"return": {}}) as monitor:
        assert not monitor.has_come()
