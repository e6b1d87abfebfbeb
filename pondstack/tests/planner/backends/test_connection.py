"""Connections to a cluster: parts run there, and whatever fails is said and ends."""

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pondstack.domain.errors import BadRequest, Unavailable
from pondstack.planner import sweep as sweep_module
from pondstack.planner.backends import connected, connection, watch
from pondstack.planner.backends.address import Address
from pondstack.planner.sweep import Results, check_engine, sweep
from pondstack.tests.planner.backends.conftest import Lost, Standin

FAILS = {"at": 0}
DEADLINE_SECONDS = 60.0


def square(number: int) -> dict:
    """Return a record with the thread that made it."""
    if number == FAILS["at"]:
        raise Lost("node gone\nTraceback of a far machine\nError: refused\n")
    return {"square": number * number, "here": threading.current_thread() is threading.main_thread()}


def parts(count: int):
    """Return the parts of a sweep."""
    return [(f"n-{number}", square, (number,)) for number in range(1, count + 1)]


def wait_in_vain() -> None:
    """Wait for what never comes; the watch is to end that."""
    threading.Event().wait(DEADLINE_SECONDS)
    pytest.fail(f"not ended within {DEADLINE_SECONDS} s")


def wait_and_fail() -> None:
    """Raise what is no loss of a cluster when a wait has ended."""
    try:
        wait_in_vain()
    finally:
        raise RuntimeError("not connected")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch, standin: Standin) -> Standin:
    """Return a cluster with which the watch loses its patience at once."""
    monkeypatch.setattr(watch, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(watch, "PATIENCE_SECONDS", 0.2)
    return standin


def test_parts_run_there_and_are_told_as_each_batch_ends(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "BATCH", 2)
    told: list[int] = []
    with connected("ray://head:1"):
        found = sweep(parts(6), Results(None, ""), jobs=None, progress=told.append)
    assert found == {f"n-{number}": {"square": number * number, "here": False} for number in range(1, 7)}
    assert told == [0, 1, 2, 3, 4, 5, 6]
    assert standin.closed.is_set()


@pytest.mark.usefixtures("standin")
def test_what_a_lost_cluster_had_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 2 processes with 2 parts each: the first one ended before the sixth part failed."""
    monkeypatch.setattr(sweep_module, "BATCH", 2)
    monkeypatch.setitem(FAILS, "at", 6)
    with pytest.raises(
        Unavailable,
        match=r"^ray://head:1 failed \(Lost: node gone \.\.\. Error: refused\); with --cache, the same command goes on",
    ):
        with connected("ray://head:1"):
            sweep(parts(6), Results(tmp_path, "d" * 64), jobs=None)
    assert len(list(tmp_path.glob("*/*.json"))) == 4
    monkeypatch.setitem(FAILS, "at", 0)
    told: list[int] = []
    with connected("ray://head:1"):
        found = sweep(parts(6), Results(tmp_path, "d" * 64), jobs=None, progress=told.append)
    assert (len(found), told) == (6, [4, 5, 6])


@pytest.mark.usefixtures("standin")
def test_a_sweep_of_which_all_is_kept_asks_for_no_process(tmp_path: Path) -> None:
    results = Results(tmp_path, "d" * 64)
    sweep(parts(1), results)
    with connected("ray://head:1"):
        assert sweep(parts(1), results, jobs=None)["n-1"]["here"] is True


@pytest.mark.parametrize("silent", [False, True])
def test_a_wait_for_a_cluster_that_is_gone_ends(hasty: Standin, silent: bool) -> None:
    """It says that it has no worker, or says nothing any more."""
    never = threading.Event()
    hasty.missing = (lambda: str(never.wait(DEADLINE_SECONDS))) if silent else (lambda: "has no worker")
    said = "does not answer" if silent else "has no worker"
    with pytest.raises(Unavailable, match=f"^ray://head:1 {said}; with --cache"), connected("ray://head:1"):
        wait_in_vain()
    never.set()
    assert hasty.closed.is_set()


def test_a_cluster_that_answers_with_errors_is_gone(hasty: Standin) -> None:
    def fail() -> str:
        raise Lost("refused")

    hasty.missing = fail
    with pytest.raises(Unavailable, match=r"does not answer \(Lost: refused\)"), connected("ray://head:1"):
        wait_in_vain()


def test_a_loss_is_said_whatever_is_raised_by_what_is_cleaned_up(hasty: Standin) -> None:
    """As Ray's pool does, which asks the cluster that is gone to end its processes."""
    hasty.missing = lambda: "has no worker"
    with pytest.raises(Unavailable, match=r"^ray://head:1 has no worker; with --cache"), connected("ray://head:1"):
        wait_and_fail()


def test_a_cluster_that_comes_back_is_waited_for(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "EVERY_SECONDS", 0.02)
    lacks, back = iter(["has no worker", "has no worker"]), threading.Event()

    def lack() -> str:
        found = next(lacks, "")
        if not found:
            back.set()
        return found

    standin.missing = lack
    with connected("ray://head:1"):
        assert back.wait(DEADLINE_SECONDS)


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Return what Ctrl-C does; a shell has commands in its background ignore it, and so may whoever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_no_loss(standin: Standin, ctrl_c: Callable[[], None]) -> None:
    with pytest.raises(KeyboardInterrupt), connected("ray://head:1"):
        ctrl_c()
    assert standin.closed.is_set()


def test_errors_of_parts_are_theirs(standin: Standin) -> None:
    with pytest.raises(ZeroDivisionError), connected("ray://head:1"):
        raise ZeroDivisionError
    assert standin.closed.is_set()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            ModuleNotFoundError("No module named 'pondstack'"),
            "ray://head:1 runs no parts (ModuleNotFoundError: No module",
        ),
        (TimeoutError(), "ray://head:1 runs no parts (TimeoutError)"),
        (Unavailable("a worker has another release"), "a worker has another release"),
    ],
)
def test_workers_are_tried_before_anything_is_computed(standin: Standin, broken: Exception, said: str) -> None:
    standin.broken = broken
    with pytest.raises(Unavailable) as caught, connected("ray://head:1"):
        pytest.fail("computes")
    assert caught.value.message.startswith(said)
    assert standin.closed.is_set()


def test_a_worker_of_another_release_is_refused() -> None:
    check_engine(sweep_module.ENGINE)
    with pytest.raises(Unavailable, match="another release of pondstack"):
        check_engine(sweep_module.ENGINE + 1)


@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_packages_that_are_missing_are_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pondstack.planner.backends.connection.find_spec", lambda _: None)
    with pytest.raises(Unavailable, match=rf"is not installed, which {kind}://h:1 needs: pip install '{kind}\["):
        with connected(f"{kind}://h:1"):
            pytest.fail("computes")


def test_a_cluster_that_refuses_is_said(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_: Address) -> Standin:
        assert not standin.closed.is_set()
        raise ConnectionError("Could not find any running instance")

    monkeypatch.setitem(connection.KINDS, "ray", ("joblib", "joblib", connect))
    with pytest.raises(Unavailable, match=r"ray://head:1 cannot be connected to \(ConnectionError: Could not find any"):
        with connected("ray://head:1"):
            pytest.fail("computes")


def test_a_connection_that_is_never_made_ends(hasty: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody listens there and says nothing."""

    def connect(_: Address) -> Standin:
        wait_in_vain()
        return hasty

    monkeypatch.setitem(connection.KINDS, "ray", ("joblib", "joblib", connect))
    with pytest.raises(Unavailable, match=r"^ray://head:1 does not answer"), connected("ray://head:1"):
        pytest.fail("computes")
    assert not hasty.closed.is_set()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "here",
        "ray:auto",
        "ray",
        "ray:",
        "dask:auto",
        "dask://host",
        "dask://host:x",
        "dask://h:1/x",
        "http://h:1",
        "ray://:1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="is no address of a cluster; give dask://HOST:PORT"):
        Address.parsed(text)


def test_addresses_are_kinds_and_places() -> None:
    assert Address.parsed("dask://[::1]:8786") == Address("dask://[::1]:8786", "dask", "[::1]:8786")
    assert Address.parsed("ray://head:10001") == Address("ray://head:10001", "ray", "head:10001")


@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_a_port_that_nobody_listens_at_is_said(kind: str) -> None:
    """Port 1 of this machine; the libraries are not asked."""
    with pytest.raises(Unavailable, match=rf"^{kind}://127.0.0.1:1 does not answer .*: start the cluster"):
        Address.parsed(f"{kind}://127.0.0.1:1").check()
