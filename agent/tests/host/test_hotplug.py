"""Tests for keeping apart memory that goes offline and reads of the kernel's memory tiers."""

import threading

from pondstack_agent.host.hotplug import Hotplug


def test_readers_are_turned_away_while_memory_goes_offline() -> None:
    hotplug = Hotplug()
    with hotplug.offlining(), hotplug.offlining(), hotplug.reading() as allowed:
        assert not allowed
    with hotplug.reading() as allowed:
        assert allowed


def test_one_of_two_that_ends_lets_nobody_read() -> None:
    hotplug = Hotplug()
    with hotplug.offlining():
        with hotplug.offlining():
            pass
        with hotplug.reading() as allowed:
            assert not allowed


def test_memory_goes_offline_once_nobody_reads() -> None:
    hotplug, began = Hotplug(), threading.Event()
    done: list[str] = []

    def take_offline() -> None:
        began.set()
        with hotplug.offlining():
            done.append("offline")

    thread = threading.Thread(target=take_offline)
    with hotplug.reading() as first:
        thread.start()
        assert began.wait(30)
        while thread.is_alive():
            with hotplug.reading() as allowed:
                if not allowed:
                    break
        done.append("read")
    thread.join(30)
    assert first
    assert done == ["read", "offline"]


def test_a_reader_that_was_turned_away_lets_nobody_wait() -> None:
    hotplug = Hotplug()
    with hotplug.offlining(), hotplug.reading():
        pass
    with hotplug.offlining():
        pass
