"""The replay's engine against a cloud in memory: everything is booted, everything departs, every failure is told."""

import threading
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from keystoneauth1.exceptions import ClientException, ConnectFailure

from bench.player import Outcome, Player
from bench.trace import Request
from bench.watch import Watcher

SMALL, BIG, BROKEN, REFUSED, STUCK = 1792, 14336, 1, 2, 3
"""Memory sizes, which tell the cloud in memory what to do."""


class Cloud:
    """A target and what a watcher polls: each server reaches its state at once."""

    def __init__(self) -> None:
        self.status: dict[str, str] = {}
        self.most_alive = 0
        self.lock = threading.Lock()

    def boot(self, request: Request, number: int) -> str:
        if request.memory_mib == REFUSED:
            raise ClientException("HTTP 500")
        with self.lock:
            self.status[str(number)] = {BROKEN: "ERROR", STUCK: "BUILD"}.get(request.memory_mib, "ACTIVE")
            alive = sum(status == "ACTIVE" for status in self.status.values())
            self.most_alive = max(self.most_alive, alive)
        return str(number)

    def delete(self, server: str) -> None:
        with self.lock:
            self.status[server] = "DELETED"

    def fault(self, server: str) -> str:
        return f"No valid host was found for {server}"

    def place(self, server: str) -> tuple[str, int]:
        return f"h{int(server) % 2}", 1024 * (int(server) % 2)

    def poll(self, since: datetime) -> Iterator[dict[str, Any]]:
        assert since.tzinfo is UTC
        with self.lock:
            yield from [{"id": server, "status": status} for server, status in self.status.items()]


class Hurried(Watcher):
    """Waits shortly for what will never be."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud.poll, 0.005)
        self._cloud = cloud

    def wait(self, server: str, statuses: Collection[str], seconds: float) -> tuple[str, float]:
        stuck = self._cloud.status[server] == "BUILD"
        return super().wait(server, statuses, 0.05 if stuck else seconds)


def play(cloud: Cloud, sizes: list[int], speed: float = 1e6, in_flight: int = 3) -> list[Outcome]:
    requests = [Request(number, 1000.0 * number, 1, size) for number, size in enumerate(sizes)]
    with Hurried(cloud) as watcher:
        player = Player(
            cloud, watcher, in_flight=in_flight, speed=speed, show=lambda _done, _note: None, answer_seconds=60.0
        )
        return player.play(requests)


def test_every_request_is_booted_and_departs() -> None:
    cloud = Cloud()
    outcomes = play(cloud, [SMALL, BIG] * 10)
    assert all(item.placed and not item.reason for item in outcomes)
    assert all(item.boot_seconds is not None and item.delete_seconds is not None for item in outcomes)
    assert sum(item.pool_mib for item in outcomes) == 10 * 1024
    assert {(item.host, item.pool_mib) for item in outcomes} == {("h0", 0), ("h1", 1024)}
    for item in outcomes:
        times = [item.asked, item.seen, item.leaving, item.gone]
        assert times == sorted(times, key=lambda at: float(at or 0))
    assert set(cloud.status.values()) == {"DELETED"}


def test_as_many_as_asked_are_in_flight_and_never_more() -> None:
    cloud, together = Cloud(), threading.Barrier(3)
    boot, under_way, most = cloud.boot, set[int](), set[int]()

    def meet(request: Request, number: int) -> str:
        under_way.add(number)
        together.wait(60)
        most.add(len(under_way))
        server = boot(request, number)
        together.wait(60)
        under_way.discard(number)
        return server

    cloud.boot = meet  # type: ignore[method-assign]
    with Watcher(cloud.poll, 0.005) as watcher:
        requests = [Request(0.0, 1e9, 1, SMALL) for _ in range(6)]
        Player(cloud, watcher, in_flight=3, speed=1.0, show=lambda _done, _note: None).play(requests)
    assert max(most) == 3


def test_who_lives_long_departs_after_the_last_arrival() -> None:
    """By the trace these would live for hours; the run does not wait for that."""
    cloud = Cloud()
    play(cloud, [SMALL] * 6, speed=100.0)
    assert cloud.most_alive >= 5


def test_a_rejected_server_is_deleted_and_told_with_its_reason() -> None:
    cloud = Cloud()
    outcome = play(cloud, [BROKEN])[0]
    assert outcome.rejected
    assert not outcome.failed
    assert "No valid host" in outcome.reason
    assert cloud.status == {"0": "DELETED"}


@pytest.mark.parametrize(("size", "reason"), [(REFUSED, "HTTP 500"), (STUCK, "not ACTIVE or ERROR within")])
def test_anything_else_is_a_failure(size: int, reason: str) -> None:
    cloud = Cloud()
    outcomes = play(cloud, [SMALL, size, SMALL])
    assert [item.failed for item in outcomes] == [False, True, False]
    assert reason in outcomes[1].reason
    assert set(cloud.status.values()) == {"DELETED"}


def test_a_defect_of_our_own_ends_the_run() -> None:
    cloud = Cloud()
    cloud.fault = lambda server: {}[server]  # type: ignore[method-assign,misc]
    with pytest.raises(KeyError):
        play(cloud, [BROKEN, SMALL])


def test_an_interruption_does_not_wait_for_what_is_under_way() -> None:
    cloud = Cloud()

    def interrupt(_done: int, note: str) -> None:
        if "1 in flight" in note:
            raise KeyboardInterrupt

    with Watcher(cloud.poll, 0.005) as watcher:
        player = Player(cloud, watcher, in_flight=1, speed=1.0, show=interrupt, answer_seconds=300.0)
        with pytest.raises(KeyboardInterrupt):
            player.play([Request(0.0, 0.0, 1, STUCK)])


def test_a_failed_poll_is_counted_and_tried_again() -> None:
    cloud = Cloud()
    answers = iter([ConnectFailure("down"), ConnectFailure("down")])

    def poll(since: datetime) -> Iterator[dict[str, Any]]:
        if error := next(answers, None):
            raise error
        return cloud.poll(since)

    with Watcher(poll, 0.005) as watcher:
        cloud.boot(Request(0, 0, 1, SMALL), 5)
        assert watcher.wait("5", {"ACTIVE"}, 60.0)[0] == "ACTIVE"
        assert watcher.failed_polls == 2
