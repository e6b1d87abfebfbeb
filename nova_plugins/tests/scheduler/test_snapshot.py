"""The snapshot cache: one background thread, readers that never wait, and staleness."""

import threading

import pytest

from pondstack.rpc.wire import Snapshot
from pondstack_nova.scheduler import per_process, snapshot


class Clock:
    """Time that only moves by hand, in seconds."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Answers with the epoch that a test sets; fails while `broken`; counts its calls."""

    def __init__(self) -> None:
        self.epoch = 1
        self.broken = False
        self.calls = 0

    def __call__(self) -> Snapshot:
        self.calls += 1
        if self.broken:
            raise ConnectionError("broker gone")
        return Snapshot(self.epoch)


@pytest.fixture
def source() -> Source:
    """Where snapshots come from."""
    return Source()


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock()


@pytest.fixture
def cache(source: Source, clock: Clock):
    """A cache whose thread refreshes only when it is asked to."""
    cache = snapshot.SnapshotCache(source, interval_seconds=3600, max_age_seconds=30, clock=clock)
    yield cache
    cache.stop()


def test_readers_never_wait_and_never_call(cache: snapshot.SnapshotCache, source: Source) -> None:
    """A thousand reads cost one call, made by the thread."""
    assert cache.newer(5).snapshot.epoch == 1
    calls = source.calls
    for _ in range(1000):
        assert cache.latest()[0] is not None
    assert source.calls == calls


def test_a_slow_controller_holds_no_reader(clock: Clock) -> None:
    """Before the first answer there is no view, and no waiting for it."""
    hold = threading.Event()

    def fetch() -> Snapshot:
        hold.wait(60)
        return Snapshot(1)

    cache = snapshot.SnapshotCache(fetch, interval_seconds=3600, max_age_seconds=30, clock=clock)
    assert cache.latest()[0] is None
    assert cache.newer(0.01) is None
    hold.set()
    cache.stop()


def test_a_stale_view_is_there_still(cache: snapshot.SnapshotCache, source: Source, clock: Clock) -> None:
    """Service down: the last view stays, and its age says how good it is."""
    cache.newer(5)
    source.broken = True
    clock.now += 30
    assert cache.newer(5) is None
    view, age_seconds = cache.latest()
    assert (view.snapshot.epoch, age_seconds, cache.stale(age_seconds)) == (1, 30, False)
    clock.now += 1
    assert cache.stale(cache.latest()[1])
    source.broken, source.epoch = False, 2
    assert cache.newer(5).snapshot.epoch == 2


def test_the_first_view_is_waited_for_once(clock: Clock) -> None:
    """By all requests together, from the first one on; who comes later does not wait."""
    arrived = threading.Event()

    def fetch() -> Snapshot:
        arrived.wait(60)
        return Snapshot(1)

    cache = snapshot.SnapshotCache(fetch, interval_seconds=3600, max_age_seconds=30, clock=clock)
    cache.latest()
    threading.Timer(0.05, arrived.set).start()
    assert cache.first(60).snapshot.epoch == 1
    cache.stop()


def test_who_comes_after_the_first_budget_does_not_wait(clock: Clock) -> None:
    """Or a scheduler without controller would hold each of its requests."""
    hold = threading.Event()
    cache = snapshot.SnapshotCache(
        lambda: hold.wait(60) and Snapshot(1), interval_seconds=3600, max_age_seconds=30, clock=clock
    )
    cache.latest()
    clock.now += 61
    assert cache.first(60) is None
    hold.set()
    cache.stop()


def test_newer_is_asked_for_after_the_call(cache: snapshot.SnapshotCache, source: Source, clock: Clock) -> None:
    """The view that was there already is not good enough."""
    cache.newer(5)
    source.epoch = 2
    clock.now += 1
    assert cache.newer(5).snapshot.epoch == 2


def test_failures_are_logged_once(
    cache: snapshot.SnapshotCache, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning when it begins, an info when it ends, nothing between: INFO stays quiet."""
    with caplog.at_level("INFO", logger="pondstack_nova.scheduler.refreshed"):
        source.broken = True
        assert [cache.refresh() for _ in range(3)] == [False] * 3
        source.broken = False
        assert cache.refresh()
        assert cache.refresh()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_one_cache_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child has its own: the parent's thread does not exist there."""
    snapshot.reset()
    parent = snapshot.cache()
    assert snapshot.cache() is parent
    monkeypatch.setattr(per_process.os, "getpid", lambda: -1)
    assert snapshot.cache() is not parent
    snapshot.reset()
