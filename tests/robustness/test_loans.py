"""What a worker that borrows does when a command of its gets lost between two leaders."""

import random
import threading
from types import SimpleNamespace
from typing import Any

from pondstack.domain.errors import StaleEpoch
from tests.robustness.caller import Caller
from tests.robustness.history import Loan, Recorder
from tests.robustness.loans import Borrower


def test_a_return_in_the_name_of_a_leader_that_was_followed_is_asked_for_again(tmp_path):
    """Its epoch was read, the next leader came, and the agent refused it: nothing was given back."""
    epochs, asked = iter([1, 2]), []

    def give_back(_host: str, *, epoch: int, **arguments: Any) -> list[int]:
        asked.append((epoch, arguments["indexes"]))
        if epoch < 2:
            raise StaleEpoch("epoch 1 is older than 2")
        return []

    rack: Any = SimpleNamespace(
        client=lambda: None,
        agent_client=lambda: SimpleNamespace(give_back=give_back),
        reader=SimpleNamespace(leader=lambda: SimpleNamespace(epoch=next(epochs))),
        shm=tmp_path,
    )
    recorder = Recorder()
    borrower = Borrower(rack, recorder, Caller(recorder, threading.Event(), random.Random(1)))
    borrower.held = [Loan("operation", "host-a", "allocation", (("host-b", "life", 3),))]
    borrower.drop()
    assert asked == [(1, [3]), (2, [3])]
