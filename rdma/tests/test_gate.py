"""A gate closes behind the last who is inside."""

import threading

import pytest

from pondstack_rdma.errors import TransportGone
from pondstack_rdma.gate import Gate

from .harness import DEADLINE_SECONDS


def test_nobody_enters_a_shut_gate() -> None:
    gate = Gate("the link")
    with gate:
        pass
    assert gate.shut() is True
    assert gate.shut() is False
    with pytest.raises(TransportGone, match="the link is closed"):
        gate.__enter__()
    gate.wait_empty()


def test_closing_waits_for_who_is_inside() -> None:
    gate, left = Gate("the link"), []
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with gate:
            entered.set()
            leave.wait(DEADLINE_SECONDS)
            left.append(True)

    thread = threading.Thread(target=stay)
    thread.start()
    assert entered.wait(DEADLINE_SECONDS)
    assert gate.shut()
    assert not left
    leave.set()
    gate.wait_empty()
    assert left
    thread.join(DEADLINE_SECONDS)


def test_an_error_inside_leaves_the_gate() -> None:
    gate = Gate("the link")
    with pytest.raises(ZeroDivisionError), gate:
        raise ZeroDivisionError
    gate.shut()
    gate.wait_empty()
