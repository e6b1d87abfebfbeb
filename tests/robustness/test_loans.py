"""What a worker that borrows does when a command of its gets lost between two leaders."""

import random
import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pondstack.domain.errors import StaleEpoch, Unavailable
from tests.robustness.caller import Caller
from tests.robustness.history import Loan, Recorder
from tests.robustness.loans import Borrower


def borrower_of(give_back: Any, over: threading.Event, folder: Path) -> Borrower:
    """One that holds a buffer, of a rack whose leaders come one after the other."""
    epochs = count(1)
    rack: Any = SimpleNamespace(
        client=lambda: None,
        agent_client=lambda: SimpleNamespace(give_back=give_back),
        reader=SimpleNamespace(leader=lambda: SimpleNamespace(epoch=next(epochs))),
        shm=folder,
    )
    recorder = Recorder()
    borrower = Borrower(rack, recorder, Caller(recorder, over, random.Random(1)))
    borrower.held = [Loan("operation", "host-a", "allocation", (("host-b", "life", 3),))]
    return borrower


def test_a_return_in_the_name_of_a_leader_that_was_followed_is_asked_for_again(tmp_path):
    """Its epoch was read, the next leader came, and the agent refused it: nothing was given back."""
    asked = []

    def give_back(_host: str, *, epoch: int, **arguments: Any) -> list[int]:
        asked.append((epoch, arguments["indexes"]))
        if epoch < 2:
            raise StaleEpoch("epoch 1 is older than 2")
        return []

    borrower_of(give_back, threading.Event(), tmp_path).drop()
    assert asked == [(1, [3]), (2, [3])]


def test_a_return_that_the_end_of_the_run_interrupted_goes_on(tmp_path):
    """Nobody answered, and the worker was told to stop: it is no loan that the rack forgot."""
    over, asked = threading.Event(), []

    def give_back(_host: str, **_arguments: Any) -> list[int]:
        asked.append(over.is_set())
        if over.is_set():
            raise Unavailable("no answer")
        return []

    borrower = borrower_of(give_back, over, tmp_path)
    over.set()
    borrower.drop()
    assert borrower.held == []
    over.clear()
    borrower.settle()
    borrower.drop()
    assert asked == [True, False]
