"""Asking a data plane: answers, refusals, silence, other programs; each error says which it is."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pondstack.domain.errors import Unavailable
from pondstack_agent.data_plane.client import ControlClient, DataPlaneGone, DataPlaneRefused, DataPlaneSilent
from pondstack_agent.data_plane.links import DataPlaneLinks
from pondstack_agent.data_plane.views import GuestState, GuestView, LeaseState, LeaseView

GUEST = "6f1c2d1e-0000-4000-8000-000000000001"
VIEW = {
    "guest": GUEST,
    "pid": 4711,
    "started": 99,
    "limit_mib": 64,
    "state": "serving",
    "problem": "",
    "resident_pages": 512,
    "evicted_pages": 256,
    "leases": [{"lender": "host1@a", "number": 3, "pages": 256, "used": 7, "state": "lost"}],
    "service": {"worst_ns": 2**62},
}
SECONDS = 0.3


@contextmanager
def answering(folder: Path, answer: Callable[[bytes], bytes | None]) -> Iterator[list[bytes]]:
    """Serve one connection after the other; None: no answer, and no end."""
    folder.mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "control.sock"))
    listener.listen()
    heard: list[bytes] = []
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            heard.append(link.makefile("rb").readline())
            told = answer(heard[-1])
            if told is None:
                kept.append(link)
                continue
            link.sendall(told)
            link.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
        for link in kept:
            link.close()


def lines(value: object) -> Callable[[bytes], bytes]:
    return lambda _request: json.dumps(value).encode() + b"\n"


def test_an_answer(tmp_path: Path) -> None:
    client = ControlClient(tmp_path / "plane", 30.0)
    with answering(tmp_path / "plane", lines({"result": VIEW})) as heard:
        found = client.attach(GUEST, 4711, "/memfd:x", "/mirrors/a", 64)
        client.lease(GUEST, "host1@a", {"driver": "shm"}, [{"number": 3}])
        client.leave(GUEST, "host1@a", [3])
        client.limit(GUEST, 32)
        client.detach(GUEST)
        assert client.view(GUEST) == found
    assert found.state is GuestState.SERVING
    assert (found.resident_mib, found.evicted_mib) == (2.0, 1.0)
    assert found.leases == (LeaseView("host1@a", 3, LeaseState.LOST, 7),)
    told = [json.loads(line) for line in heard]
    assert [request.pop("verb") for request in told] == ["attach", "lease", "leave", "limit", "detach", "view"]
    where = {"guest": GUEST, "pid": 4711, "memory": "/memfd:x", "mirror": "/mirrors/a", "limit_mib": 64}
    assert told[0] == {**where, "policy": "mixed", "read_ahead_pages": 8}  # and no chunks, which a release before lacks
    assert told[1] == {"guest": GUEST, "lender": "host1@a", "ticket": {"driver": "shm"}, "keys": [{"number": 3}]}
    assert told[2] == {"guest": GUEST, "lender": "host1@a", "numbers": [3]}


def test_all_guests(tmp_path: Path) -> None:
    with answering(tmp_path / "plane", lines({"result": {"guests": [VIEW, VIEW | {"guest": "other"}]}})):
        found = ControlClient(tmp_path / "plane", 30.0).guests()
    assert [each.guest for each in found] == [GUEST, "other"]


def test_links(tmp_path: Path) -> None:
    view = {
        "guests": [],
        "links": [{"lender": "host1@a", "state": "connected"}, {"lender": "host2@b", "state": "lost"}],
    }
    client = ControlClient(tmp_path / "plane", 30.0)
    with answering(tmp_path / "plane", lines({"result": view})) as heard:
        links = DataPlaneLinks(client)
        links.connect("host1", "a", {"driver": "shm"})
        assert links.alive() == [("host1", "a")]
    assert json.loads(heard[0]) == {"verb": "connect", "lender": "host1@a", "ticket": {"driver": "shm"}}
    assert links.alive() == []
    with pytest.raises(Unavailable):
        links.connect("host1", "a", {})


def test_a_former_data_plane_keeps_no_links(tmp_path: Path) -> None:
    links = DataPlaneLinks(ControlClient(tmp_path / "plane", 30.0))
    refused = {"error": {"text": "verb: one of attach, limit is needed"}}
    with (
        answering(tmp_path / "plane", lines(refused)),
        pytest.raises(Unavailable, match="does not connect to lender host1: verb"),
    ):
        links.connect("host1", "a", {})
    with answering(tmp_path / "other", lines({"result": {"guests": []}})):
        assert DataPlaneLinks(ControlClient(tmp_path / "other", 30.0)).alive() == []


def test_a_guest_that_is_not_attached(tmp_path: Path) -> None:
    with answering(tmp_path / "plane", lines({"error": {"text": f"guest {GUEST} is not attached"}})):
        assert ControlClient(tmp_path / "plane", 30.0).view(GUEST) is None
        with pytest.raises(DataPlaneRefused, match="is not attached"):
            ControlClient(tmp_path / "plane", 30.0).limit(GUEST, 3)


def test_a_refusal(tmp_path: Path) -> None:
    with (
        answering(tmp_path / "plane", lines({"error": {"text": "8 KiB are huge pages"}})),
        pytest.raises(DataPlaneRefused, match="huge pages"),
    ):
        ControlClient(tmp_path / "plane", 30.0).view(GUEST)


def test_nobody_serves(tmp_path: Path) -> None:
    client = ControlClient(tmp_path / "plane", 30.0)
    with pytest.raises(DataPlaneGone, match=r"start pondstack-data-plane\.service"):
        client.guests()
    with answering(tmp_path / "plane", lines({"result": {"guests": []}})):
        assert client.guests() == []
    with pytest.raises(DataPlaneGone):  # its socket is still there
        client.guests()


def test_it_does_not_answer(tmp_path: Path) -> None:
    with (
        answering(tmp_path / "plane", lambda _request: None),
        pytest.raises(DataPlaneSilent, match=r"within 0\.3 s; see whether it is frozen"),
    ):
        ControlClient(tmp_path / "plane", SECONDS).guests()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b'{"result"',
        b"hello\n",
        b"[]\n",
        b"{}\n",
        b'{"result": {}, "error": {}}\n',
        b'{"result": {"guests": 3}}\n',
        b'{"result": {"guests": [{"guest": "x"}]}}\n',
        b'{"result": {"guests": [], "links": [{"lender": "x", "state": "asleep"}]}}\n',
        json.dumps({"result": {"guests": [VIEW | {"state": "asleep"}]}}).encode() + b"\n",
        json.dumps({"result": {"guests": [VIEW | {"evicted_pages": -1}]}}).encode() + b"\n",
    ],
    ids=range(11),
)
def test_another_program(tmp_path: Path, answer: bytes) -> None:
    with (
        answering(tmp_path / "plane", lambda _request: answer),
        pytest.raises(DataPlaneSilent, match="no answer to go by"),
    ):
        ControlClient(tmp_path / "plane", 30.0).guests()


def test_what_a_guest_that_is_not_served_lacks() -> None:
    bare = {key: VIEW[key] for key in ("guest", "pid", "started", "limit_mib")}
    found = GuestView.from_json(bare | {"state": "failed", "problem": "its mirror is gone"})
    assert (found.evicted_mib, found.resident_mib, found.leases) == (None, None, ())
