"""An access during which its key is revoked: the second look at the word."""

from collections.abc import Iterator
from typing import Any

import pytest

from pondstack_rdma.errors import KeyRevoked, OutOfBounds, TransportGone
from pondstack_rdma.model import Key, Operation, Read, Write
from pondstack_rdma.shm.memory import SharedMemory
from pondstack_rdma.shm.window import Window

from .harness import PAGE, SIZE

KEY = Key(1, "host1", SIZE, b"token")


class Script:
    """Stands for a control page: tells whether the key lives as a test has written down, then for ever the last."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)

    def lives(self, _slot: int, _number: int) -> bool:
        """Tell the next one."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    made = SharedMemory(SIZE)
    yield made
    made.close()


def open_window(memory: SharedMemory, *answers: bool) -> Window:
    """Map the region."""
    control: Any = Script(*answers)
    return Window(KEY, memory.fd, 0, control)


def access(window: Window, operation: Operation) -> None:
    """Carry it out."""
    window.carry_out(operation, memoryview(operation.into if isinstance(operation, Read) else operation.data))


OPERATIONS: list[Operation] = [Read(KEY, 0, bytearray(PAGE)), Write(KEY, 0, b"x" * PAGE)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_key_that_is_revoked_meanwhile_is_told(memory: SharedMemory, operation: Operation) -> None:
    window = open_window(memory, True, False)
    with pytest.raises(KeyRevoked):
        access(window, operation)
    window.close()


def test_a_key_that_was_revoked_before_writes_nothing(memory: SharedMemory) -> None:
    window = open_window(memory, False, True)
    with pytest.raises(KeyRevoked):
        access(window, OPERATIONS[1])
    assert memory.view[:PAGE] == bytes(PAGE)
    window.close()


def test_the_bounds_are_those_of_the_memory_not_of_the_key(memory: SharedMemory) -> None:
    window = Window(Key(1, "host1", 2 * SIZE, b"token"), memory.fd, 0, Script(True))  # type: ignore[arg-type]
    with pytest.raises(OutOfBounds):
        access(window, Write(KEY, SIZE, b"x"))
    window.close()


@pytest.mark.parametrize(("lives", "error"), [(True, TransportGone), (False, KeyRevoked)])
def test_a_closed_window_tells_why(memory: SharedMemory, lives: bool, error: type[Exception]) -> None:
    window = open_window(memory, lives)
    for _ in range(2):
        window.close()
    with pytest.raises(error):
        access(window, OPERATIONS[0])
