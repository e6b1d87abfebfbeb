"""The fault driver: what each fault leaves behind, and that a seed repeats."""

import random
from collections import Counter
from pathlib import Path

import pytest

from pondstack.domain.errors import PondError
from pondstack_rdma.errors import OutOfBounds, PartialBatch, TransportGone, TransportTimeout
from pondstack_rdma.fault import Fault, FaultPlan, FaultTransport, draw
from pondstack_rdma.model import Operation, Write
from pondstack_rdma.shm import ShmTransport

from .harness import PAGE, SIZE

FULL = 1.0
EVERY = FaultPlan(seed=3, lost=0.1, unanswered=0.1, broken=0.05, partial=0.1, delayed=0.2)


def run(folder: Path, plan: FaultPlan, calls: int = 60) -> tuple[list[str], bytes, FaultTransport, list[float]]:
    """Write batches of four pages; returns what each told, what the lender has, the transport, and the pauses."""
    pauses: list[float] = []
    transport = FaultTransport(ShmTransport(folder), plan, pauses.append)
    told = []
    with transport.lend("lender1") as lender:
        region = lender.register(SIZE)
        key, ticket = lender.export(region, "host1"), lender.admit("host1")
        link = transport.connect(ticket, 5.0)
        for call in range(calls):
            batch: list[Operation] = [Write(key, page * PAGE, bytes([call + 1])) for page in range(4)]
            told.append(outcome(link.batch, batch))
            if told[-1].startswith("TransportGone"):
                link.close()
                link = transport.connect(ticket, 5.0)
        link.close()
        seen = bytes(lender.load(region, page * PAGE, 1)[0] for page in range(4))
    return told, seen, transport, pauses


def outcome(call, *arguments) -> str:
    """Return the name of the reason and how much was done."""
    try:
        call(*arguments)
    except PartialBatch as error:
        return f"{type(error.reason).__name__} {error.done}"
    except PondError as error:
        return type(error).__name__
    return "done"


def test_a_seed_repeats(tmp_path: Path) -> None:
    first, again, other = (run(tmp_path, plan) for plan in (EVERY, EVERY, FaultPlan(seed=4, lost=0.1, partial=0.2)))
    assert first[:2] == again[:2]
    assert first[2].history == again[2].history
    assert first[3] == again[3]
    assert first[2].history != other[2].history


def test_without_faults_it_is_transparent(tmp_path: Path) -> None:
    told, seen, transport, pauses = run(tmp_path, FaultPlan(seed=1))
    assert set(told) == {"done"}
    assert seen == bytes([60] * 4)
    assert not pauses
    assert {fate.fault for fate in transport.history} == {Fault.NONE}


@pytest.mark.parametrize(
    ("plan", "told", "written"),
    [
        (FaultPlan(seed=1, lost=FULL), "TransportTimeout 0", 0),
        (FaultPlan(seed=1, unanswered=FULL), "TransportTimeout 0", 4),
        (FaultPlan(seed=1, broken=FULL), "TransportGone 0", 0),
        (FaultPlan(seed=1, partial=FULL), "TransportGone 3", 3),
    ],
)
def test_what_a_fault_leaves_behind(tmp_path: Path, plan: FaultPlan, told: str, written: int) -> None:
    assert run(tmp_path, plan, calls=1)[:2] == ([told], bytes([1] * written + [0] * (4 - written)))


def test_a_lost_answer_takes_the_whole_time_out(tmp_path: Path) -> None:
    assert run(tmp_path, FaultPlan(seed=1, lost=FULL), calls=2)[3] == [5.0, 5.0]


def test_a_broken_link_stays_broken(tmp_path: Path) -> None:
    transport = FaultTransport(ShmTransport(tmp_path), FaultPlan(seed=1, broken=FULL))
    with transport.lend("lender1") as lender:
        key = lender.export(lender.register(SIZE), "host1")
        with transport.connect(lender.admit("host1"), 5.0) as link:
            for use in (lambda: link.write(key, 0, b"x"), link.flush, lambda: link.open(key)):
                with pytest.raises(TransportGone, match="injected"):
                    use()
        assert len(transport.history) == 1


def test_single_accesses_and_flush_are_disturbed(tmp_path: Path) -> None:
    transport = FaultTransport(ShmTransport(tmp_path), FaultPlan(seed=1, lost=FULL), lambda _: None)
    with transport.lend("lender1") as lender:
        key = lender.export(lender.register(SIZE), "host1")
        with transport.connect(lender.admit("host1"), 5.0) as link:
            for use in (lambda: link.write(key, 0, b"x"), lambda: link.read(key, 0, 1), link.flush):
                with pytest.raises(TransportTimeout, match="injected"):
                    use()


def test_a_real_refusal_comes_through(tmp_path: Path) -> None:
    transport = FaultTransport(ShmTransport(tmp_path), FaultPlan(seed=1, delayed=FULL), lambda _: None)
    with transport.lend("lender1") as lender:
        key = lender.export(lender.register(SIZE), "host1")
        with transport.connect(lender.admit("host1"), 5.0) as link:
            with pytest.raises(OutOfBounds):
                link.write(key, SIZE, b"x")
            with pytest.raises(PartialBatch) as caught:
                link.batch([Write(key, 0, b"x"), Write(key, SIZE, b"x")])
    assert caught.value.done == 1


def test_faults_are_as_frequent_as_planned() -> None:
    dice = random.Random(EVERY.seed)
    fates = [draw(dice, EVERY, 10) for _ in range(4000)]
    seen = Counter(fate.fault for fate in fates)
    for fault in (Fault.LOST, Fault.UNANSWERED, Fault.BROKEN, Fault.PARTIAL):
        assert seen[fault] / 4000 == pytest.approx(getattr(EVERY, fault.value), abs=0.02)
    assert sum(fate.delay_seconds > 0 for fate in fates) / 4000 == pytest.approx(EVERY.delayed, abs=0.03)
    assert all(0 <= fate.delay_seconds <= EVERY.max_delay_seconds for fate in fates)
    assert {fate.done for fate in fates if fate.fault is Fault.PARTIAL} == set(range(10))
