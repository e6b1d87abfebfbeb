"""The lender's process: frozen, killed, started twice, told nonsense."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Conflict, InUse, NotFound, Unavailable
from pondstack_agent.helper.client import HelperSilent
from pondstack_agent.lending.client import Command, LenderClient
from pondstack_agent.lending.model import Holding
from pondstack_agent.lending.program import LENDER
from pondstack_rack.wait import wait_until
from pondstack_rdma.errors import TransportGone, TransportTimeout

from .conftest import DEADLINE_SECONDS, state_of
from .links import LenderLink


def test_a_frozen_lender_serves_what_was_opened(rack) -> None:
    host, borrower = rack["host1"], rack["host2"]
    host.lend(2, "zombie")
    incarnation = rack.borrow_buffers([0])
    more = host.calls.export(epoch=1, indexes=[1], borrower="host2")
    link = borrower.link("host1", incarnation)
    link.write(0, 0, b"opened")
    host.lending._client._seconds = 0.3
    with host.frozen():
        for number in range(20):
            link.write(0, number * 4096, bytes([number]) * 4096)
        read = bytearray(4096)
        for number in range(20):
            link.read_into(0, number * 4096, read)
            assert read == bytes([number]) * 4096
        # What needs its CPU is an error within the time-out, and harms nothing of that.
        assert borrower.calls.prepare(epoch=1, lender="host1", allocation_uuid="allocation1", **more) == [1]
        with pytest.raises(TransportTimeout):
            link.write(1, 0, b"not opened before")
        with pytest.raises(TransportTimeout):
            LenderLink(borrower.conf, borrower.borrower, "host1", incarnation).write(0, 0, b"a new link")
        with pytest.raises(HelperSilent):
            host.lending.revoke([0])
        with pytest.raises(Unavailable, match="frozen"):
            host.calls.revoke(epoch=1, indexes=[0])
        with pytest.raises(Unavailable):
            host.calls.get_lent()
        seen = host.lending.get_lending()
        assert (seen["answers"], seen["incarnation"]) == (False, incarnation)
        host.beat()
        borrower.beat()
        link.read_into(0, 0, read)
        assert read == bytes(4096)
    assert host.calls.revoke(epoch=1, indexes=[0]) == [0]
    link.write(1, 0, b"awake")


def test_a_killed_lender_is_told_and_lends_anew(rack, caplog) -> None:
    host, borrower = rack["host1"], rack["host2"]
    host.lend(2)
    former = rack.borrow_buffers([0])
    host.kill()
    host.beat()
    assert f"incarnation {former} is gone" in caplog.text
    told = rack.controller.delegated[-1]
    assert (told["incarnation"], told["buffers"]) == ("", [])
    host.beat()
    assert len(rack.controller.delegated) == 2  # once
    with pytest.raises(TransportGone):
        borrower.link("host1", former).write(0, 0, b"x")
    borrower.beat()
    assert borrower.owner.told == [("arrived", "allocation1", [0])]

    lent = host.lend(1, operation="lend2")
    assert lent["incarnation"] not in ("", former)
    assert rack.controller.delegated[-1]["incarnation"] == lent["incarnation"]
    # Numbers of the former life mean nothing now.
    with pytest.raises(NotFound):
        host.calls.export(epoch=1, indexes=[0], borrower="host2", incarnation=former)
    assert host.calls.revoke(epoch=1, indexes=[0], incarnation=former) == [0]
    assert host.calls.withdraw(epoch=1, indexes=[0], incarnation=former) == [0]
    assert [item["index"] for item in host.lending.get_lending()["buffers"]] == [0]
    # The borrower holds both lives apart, and gives the former one back.
    assert rack.borrow_buffers([0], allocation="allocation2") == lent["incarnation"]
    gone = {"allocation_uuid": "allocation1", "lender": "host1", "incarnation": former, "indexes": [0]}
    borrower.calls.give_back(epoch=1, **gone)
    borrower.later.run()
    assert list(rack.controller.released_buffers.values()) == [{"host": "host2", **gone}]
    borrower.link("host1", lent["incarnation"]).write(0, 0, b"x")


def test_a_loss_is_told_when_the_controller_answers_again(rack) -> None:
    def silent(**_: object) -> None:
        raise Unavailable("no answer")

    host = rack["host1"]
    host.lend(1)
    host.kill()
    rack.controller.before["delegate"] = [silent]
    host.beat()
    host.restart()
    host.beat()
    assert [offer["incarnation"] == "" for offer in rack.controller.delegated] == [False, True]


def test_whoever_comes_next_finds_zeros(rack) -> None:
    rack["host1"].lend(1)
    incarnation = rack.borrow_buffers([0])
    rack["host2"].link("host1", incarnation).write(0, 0, b"secret")
    answer = {"epoch": 1, "indexes": [0]}
    with pytest.raises(InUse):
        rack["host1"].calls.export(**answer, borrower="host3")
    with pytest.raises(InUse):
        rack["host1"].calls.withdraw(**answer)
    assert rack["host1"].calls.revoke(**answer) == [0]
    with pytest.raises(Conflict):
        rack["host2"].link("host1", incarnation).write(0, 0, b"secret")
    rack.borrow_buffers([0], borrower="host3", allocation="allocation2")
    read = bytearray(b"------")
    rack["host3"].link("host1", incarnation).read_into(0, 0, read)
    assert read == bytes(6)


def test_another_lender_of_the_same_folder_is_refused(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    with pytest.raises(Unavailable, match="another lender's"):
        host.lending._client.start()
    assert len(host.lending.get_lending()["buffers"]) == 1


def test_why_it_does_not_start_is_told(tmp_path) -> None:
    client = LenderClient(tmp_path, Command("host1", "tcp", {"colour": "blue"}, 1), 60.0)
    assert client.hold() == Holding()
    with pytest.raises(Unavailable, match=r"the transport tcp does not take the options \{'colour': 'blue'\}"):
        client.start()
    with pytest.raises(Unavailable, match="launcher"):
        LenderClient(tmp_path, Command("host1", "tcp", launcher="/no/such/launcher"), 60.0).start()


def test_it_is_its_users_alone(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    for path, mode in (
        (host.folder, 0o700),
        (host.folder / "lender.sock", 0o600),
        (host.folder / "lender.lock", 0o600),
    ):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    state = json.loads((host.folder / "lender.lock").read_text())
    assert state == {"pid": host.pid, "incarnation": host.lending.get_lending()["incarnation"]}
    assert (host.folder / "lender.log").read_text() == ""


def test_it_keeps_nothing_of_the_agent_open(rack) -> None:
    """A descriptor of the agent's would keep its sockets and locks alive."""
    host = rack["host1"]
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    host.lend(1)
    os.close(writer)
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b""
    os.close(reader)
    targets = {os.readlink(path) for path in Path(f"/proc/{host.pid}/fd").iterdir()}
    assert not [target for target in targets if target.startswith("pipe:")]
    assert os.getsid(host.pid) != os.getsid(0)


def test_a_lender_that_cannot_be_reached_is_not_lost(rack) -> None:
    """Its keys live: the controller must not hear that they are dead."""
    host = rack["host1"]
    host.lend(1)
    socket = host.folder / "lender.sock"
    socket.rename(socket.with_name("away"))
    assert host.lending.get_lending()["answers"] is False
    host.beat()
    assert len(rack.controller.delegated) == 1
    socket.with_name("away").rename(socket)
    assert host.lending.get_lending()["answers"] is True


def test_nonsense_ends_nothing(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    client = host.lending._client
    for request in ({"verb": "dance"}, {"verb": "export"}, {}, {"verb": "become", "kind": "vampire"}):
        with pytest.raises((BadRequest, Unavailable)):
            client._ask(**{"verb": "", **request})
    assert len(host.lending.get_lending()["buffers"]) == 1


def test_it_ends_by_its_signal_and_gives_all_back(rack) -> None:
    host = rack["host1"]
    host.lend(1)
    pid = host.pid
    os.kill(pid, signal.SIGTERM)
    # The first of its threads may have ended before the others.
    assert wait_until(lambda: state_of(pid) in ("", "Z") and not LENDER.runs(host.folder), DEADLINE_SECONDS)
    assert host.lending.get_lending()["incarnation"] == ""


def serves(client: LenderClient) -> bool:
    try:
        return client.hold().incarnation != ""
    except HelperSilent:
        return False  # it starts


def test_in_the_foreground_it_is_a_unit(tmp_path) -> None:
    command = Command("host9", "tcp", {}, 1)
    client = LenderClient(tmp_path, command, 60.0)
    words = [*client.words(*command.words()), "--foreground"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:
        try:
            assert wait_until(lambda: serves(client), DEADLINE_SECONDS)
            client.register(client.hold().incarnation)
            assert client.hold().mib == 1
        finally:
            process.terminate()
        assert process.wait(60) == 0


def test_it_is_small() -> None:
    """What serves a sleeping host's memory carries no bus, no options, no service of others."""
    program = (
        "import sys; from pondstack_agent.lending import process; print(*(name.split('.')[0] for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pondstack_agent" in loaded
    assert not loaded & {"eventlet", "futurist", "oslo_config", "oslo_messaging", "oslo_service"}
