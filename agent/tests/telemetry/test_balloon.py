"""Committed memory: what libvirt's statistics mean, and every way in which there are none."""

import sys
import threading
from typing import Any

import pytest

from pondstack_agent.telemetry import balloon
from pondstack_agent.telemetry.balloon import Balloon, BalloonLook, committed
from pondstack_agent.telemetry.outbox import Outbox

GUEST = "6695eb01-f6a4-8304-79aa-97f2502e193f"
"""The domain that libvirt's test driver has from the start: 2 GiB, of which 1 GiB are unused."""
STRANGER = "11111111-1111-4111-8111-111111111111"


def test_committed_is_what_is_not_unused() -> None:
    stats = {"actual": 4194304, "available": 2097152, "unused": 524288, "last_update": 1000}
    assert committed(stats, 1010.0, 60.0) == 1536.0


@pytest.mark.parametrize("missing", ["available", "unused"])
def test_a_guest_without_a_driver(missing: str) -> None:
    stats = {"actual": 4194304, "rss": 100, "available": 2097152, "unused": 524288}
    del stats[missing]
    assert committed(stats, 0.0, 60.0) == balloon.NO_DRIVER


def test_a_driver_that_says_nothing_any_more() -> None:
    stats = {"available": 2097152, "unused": 524288, "last_update": 1000}
    assert committed(stats, 1100.0, 60.0) == "the guest's balloon driver was last heard 100 s ago"


@pytest.fixture
def libvirt() -> Any:
    return pytest.importorskip("libvirt", reason="Python's libvirt bindings are not installed")


def ask(uri: str, stale_seconds: float = 1e12) -> dict[str, Any]:
    return Balloon(uri, stale_seconds).ask([GUEST, STRANGER])


@pytest.mark.usefixtures("libvirt")
def test_libvirt_is_asked() -> None:
    assert ask("test:///default") == {GUEST: 1024.0, STRANGER: balloon.UNKNOWN}
    assert "last heard" in str(ask("test:///default", 60.0)[GUEST])


@pytest.mark.usefixtures("libvirt")
def test_no_libvirt_there() -> None:
    answers = ask("qemu+unix:///system?socket=/nonexistent")
    assert all("cannot be reached at qemu+unix" in str(answer) for answer in answers.values())


def test_no_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    assert set(ask("test:///default").values()) == {balloon.NO_BINDINGS}


def test_a_libvirt_that_hangs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    release, asked = threading.Event(), []

    def hang(_self: Balloon, names: list[str]) -> dict[str, Any]:
        asked.append(names)
        release.wait(30)
        return dict.fromkeys(names, 1.0)

    monkeypatch.setattr(Balloon, "_ask", hang)
    asker = Balloon("test:///default", 60.0)
    assert asker.ask([GUEST], deadline_seconds=0.01) == {GUEST: balloon.HANGS}
    assert asker.ask([GUEST], deadline_seconds=0.01) == {GUEST: balloon.HANGS}
    assert len(asked) == 1
    release.set()
    assert asker._pending is not None
    asker._pending.result(30)
    assert asker.ask([GUEST]) == {GUEST: 1.0}


@pytest.mark.usefixtures("libvirt")
def test_samples_of_all_guests() -> None:
    outbox = Outbox(lambda: 0.0)
    BalloonLook(outbox, Balloon("test:///default", 1e12), lambda: {GUEST: 1, STRANGER: 2}).run()
    known, unknown = outbox.take()
    assert (known.metric, known.mean) == ("committed_mib", 1024.0)
    assert (unknown.readings, unknown.reason) == (0, balloon.UNKNOWN)
