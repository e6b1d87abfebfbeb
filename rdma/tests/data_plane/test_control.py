"""The control socket: what is no request is answered so, and harms nobody."""

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pondstack_rdma.shm import ShmTransport
from tests.fixtures.seeds import seed

from . import builds
from .processes import DataPlane, RefusedError, connect, send


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builds.programs(tmp_path_factory)[0]


@pytest.fixture
def plane(program: Path, tmp_path: Path) -> Iterator[DataPlane]:
    made = DataPlane(program, tmp_path / "plane")
    made.start()
    made.await_ready()
    yield made
    made.stop()


EMPTY: dict[str, object] = {"guests": [], "blocks": [], "links": []}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "one JSON object on a line"),
        (b"view", "one JSON object on a line"),
        (b"[]", "this is none"),
        (b"\xff\xfe", "one JSON object on a line"),
        (b"[" * 30000, "one JSON object on a line"),
        (b'{"verb": "view", "verb": "detach"}', "duplicate"),
        (b"{}", "verb: one of attach, limit, lease, leave, detach, view"),
        (b'{"verb": 3}', "verb: one of"),
        (b'{"verb": "destroy"}', "verb: one of"),
        (b'{"verb": "detach"}', "guest"),
        (b'{"verb": "detach", "guest": "6f1c"}', "guest 6f1c is not attached"),
        (b'{"verb": "view", "guest": 3}', "Expected string, got integer"),
        (b'{"verb": "limit", "guest": "6f1c", "limit_mib": 1e300}', "Expected integer, got real"),
        (b'{"verb": "attach"}', "guest"),
        (b'{"verb": "export"}', "block"),
        (b'{"verb": "resize", "block": "6f1c", "mib": 1}', "block 6f1c is not exported"),
        (b'{"verb": "lease", "block": 3, "lender": "x", "ticket": {}, "keys": []}', "Expected string, got integer"),
        (b'{"verb": "lease", "block": "6f1c", "lender": "x", "ticket": {}, "keys": {}}', "a list"),
        (b'{"verb": "connect", "lender": "x"}', "ticket"),
        (b'{"verb": "connect", "lender": "", "ticket": {}}', "a name of 1 to 127 bytes"),
        (b'{"verb": "connect", "lender": "%s", "ticket": {}}' % (b"x" * 128), "a name of 1 to 127 bytes"),
        (b'{"verb": "connect", "lender": "x", "ticket": {}, "deadline_ms": 9}', "deadline_ms: 10 to 60000, not 9"),
        (b'{"verb": "connect", "lender": "x", "ticket": []}', "ticket: Expected object"),
        (b'{"verb": "connect", "lender": "x", "ticket": {}, "guest": "6f1c"}', "1 object item(s) left unpacked: guest"),
        (b'{"verb": "disconnect", "lender": 3}', "Expected string, got integer"),
    ],
    ids=range(25),
)
def test_what_is_no_request(plane: DataPlane, line: bytes, reason: str) -> None:
    with connect(plane) as link:
        error = send(link, line)["error"]
        assert reason in str(error)
        assert send(link, b'{"verb": "view", "id": [1]}') == {"result": EMPTY, "id": [1]}


ATTACH = b'{"verb": "attach", "guest": "6f1c", "pid": 1, "memory": "ram", "mirror": "/m", "limit_mib": 1, "id": 1}'
EXPORT = b'{"verb": "export", "block": "6f1c", "mib": 1, "mirror": "/nowhere/m", "socket": "/nowhere/s", "user": 0}'
CONNECT = (
    b'{"verb": "connect", "lender": "x", "ticket": {"driver": "shm", "address": "/nowhere", "borrower": "b", '
    b'"secret": "00"}, "deadline_ms": 10}'
)
LEASE = (
    b'{"verb": "lease", "block": "6f1c", "lender": "x", "keys": [{"number": 1, "size_bytes": 4096, '
    b'"location": {"fd": 3, "slot": 0}}]}'
)


@pytest.mark.parametrize("text", [ATTACH, EXPORT, CONNECT, LEASE], ids=["attach", "export", "connect", "lease"])
def test_random_bytes(plane: DataPlane, text: bytes) -> None:
    dice = random.Random(seed(20183))
    with connect(plane) as link:
        for _ in range(300):
            line = bytearray(text)
            for _ in range(dice.randrange(1, 6)):
                line[dice.randrange(len(line))] = dice.choice(b'{}[]":,0aZ\\ \x00\xc3')
            assert "error" in send(link, bytes(line))


def test_a_line_without_an_end(plane: DataPlane) -> None:
    with connect(plane) as link, pytest.raises(OSError):
        link.sendall(b"x" * 2**23)
    assert plane.ask(verb="view") == EMPTY


def test_many_who_say_nothing(plane: DataPlane) -> None:
    """More than there is room for are hung up on; those who were there stay."""
    links = [connect(plane) for _ in range(16)]
    with connect(plane) as late:
        assert late.recv(1) == b""
    assert send(links[7], b'{"verb": "view"}') == {"result": EMPTY}
    for link in links:
        link.close()
    plane.await_ready()


def test_half_a_request_and_several_at_once(plane: DataPlane) -> None:
    with connect(plane) as link:
        link.sendall(b'{"verb": "vi')
        link.sendall(b'ew"}\n{"verb": "view"}\n{"verb": "none"}\n')
        lines = link.makefile()
        assert [next(iter(json.loads(lines.readline()))) for _ in range(3)] == ["result", "result", "error"]


def test_only_its_user_may_ask(plane: DataPlane) -> None:
    assert (plane.folder / "control.sock").stat().st_mode & 0o777 == 0o600
    assert plane.folder.stat().st_mode & 0o777 == 0o700


def test_one_process_has_a_folder(plane: DataPlane) -> None:
    done = subprocess.run([str(plane.program), "serve", str(plane.folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "another data plane uses the folder" in done.stderr
    assert plane.ask(verb="view") == EMPTY


def test_a_record_that_is_none_stays(program: Path, tmp_path: Path) -> None:
    """Nobody knows what it was: it is told, and left for a person."""
    plane = DataPlane(program, tmp_path / "plane")
    (plane.folder / "guests").mkdir(parents=True)
    record = plane.folder / "guests" / "6f1c.json"
    record.write_text("{")
    plane.start()
    plane.await_ready()
    assert plane.ask(verb="view") == EMPTY
    plane.stop()
    assert "6f1c.json cannot be read" in plane.log()
    assert record.exists()


def test_the_command_line(program: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)

    assert (run("--help").returncode, run().returncode, run("serve").returncode) == (0, 2, 2)
    assert "serve FOLDER" in run("--help").stdout
    nobody = run("ask", str(tmp_path), "{}")
    assert (nobody.returncode, "no data plane listens on" in nobody.stderr) == (1, True)
    long = run("serve", str(tmp_path / ("x" * 100)))
    assert (long.returncode, "too long" in long.stderr) == (1, True)
    nowhere = run("serve", "/nowhere/plane")
    assert (nowhere.returncode, "cannot be made" in nowhere.stderr) == (1, True)
    assert os.listdir(tmp_path) == ["x" * 100]


def test_asked_by_its_own_program(plane: DataPlane, program: Path) -> None:
    """One line of JSON is its answer, whether it is a result or an error."""
    for request, wanted in (({"verb": "view"}, "result"), ({"verb": "view", "guest": "6f1c"}, "error")):
        command = [str(program), "ask", str(plane.folder), json.dumps(request)]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (asked.returncode != 0, list(json.loads(asked.stdout))) == (wanted == "error", [wanted])


def test_an_unknown_guest(plane: DataPlane) -> None:
    with pytest.raises(RefusedError, match="is not attached"):
        plane.view()


def test_there_are_so_many_links_at_most(plane: DataPlane, tmp_path: Path) -> None:
    with ShmTransport(str(tmp_path)).lend("lender") as lender, connect(plane) as link:
        ticket = lender.admit("host1").to_dict()

        def ask(verb: str, number: int, **more: object) -> dict[str, object]:
            return send(link, json.dumps({"verb": verb, "lender": f"lender{number}", **more}).encode())

        for number in range(256):
            assert "result" in ask("connect", number, ticket=ticket)
        assert "links to 256 lenders already" in str(ask("connect", 256, ticket=ticket)["error"])
        assert "result" in ask("connect", 255, ticket=ticket)
        assert "result" in ask("disconnect", 0)
        assert "result" in ask("connect", 256, ticket=ticket)
