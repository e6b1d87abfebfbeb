"""Each time that memory of a node goes offline is counted, whoever ordered it, also when only some of it went."""

from pathlib import Path

import pytest

from agent.tests.drivers.cxl.kernel import CXL_SERIAL, NODE, SLICE_BYTES, Kernel
from pondstack.devices import pool_uuid
from pondstack.domain.errors import DeviceFailed
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from pondstack_agent.drivers.cxl.driver import CxlHostPool
from pondstack_agent.drivers.cxl.evacuations import Evacuations
from pondstack_agent.drivers.cxl.returns import Settings

SERIAL = "pool-1"


def grant(tag: str, first: int, count: int) -> Grant:
    """Slices of the device."""
    extents = (Extent(first, count),)
    return Grant(tag, f"guest-of-{tag}", "host1", pool_uuid(SERIAL), "pool0", {}, SLICE_BYTES >> 20, extents, 1)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The host's kernel."""
    made = Kernel(tmp_path / "host1")
    made.install(monkeypatch)
    return made


@pytest.fixture
def start(tmp_path: Path, kernel: Kernel):
    """Start the host's driver."""
    return lambda: CxlHostPool(
        host="host1",
        state_dir=tmp_path / "state",
        pools={CXL_SERIAL: SERIAL},
        settings=Settings(offline_attempts=1),
        sysfs=kernel,
    )


def test_none_while_it_goes_on() -> None:
    counts = Evacuations()
    with counts.of({1}):
        assert counts.by_node() == {1: None}
        with counts.of({1, 2}):
            assert counts.by_node() == {1: None, 2: None}
        assert counts.by_node() == {1: None, 2: 1}
    assert counts.by_node() == {1: 2, 2: 1}


def test_a_detach_counts_when_its_memory_is_offline(start, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, seen = start(), []
    driver.attach(grant("a", 0, 2))
    driver.attach(grant("b", 2, 1))
    assert driver.evacuations() == {}
    offline = kernel.offline_blocks

    def look(*arguments):
        seen.append(driver.evacuations())
        return offline(*arguments)

    monkeypatch.setattr("pondstack_agent.drivers.cxl.privileged.offline_blocks", look)
    assert driver.detach("a")
    assert seen == [{NODE: None}]
    assert driver.evacuations() == {NODE: 1}


def test_one_that_only_some_of_it_obeyed_counts(start, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = start()
    driver.attach(grant("a", 0, 2))
    some = lambda folders, seconds: (kernel.offline_blocks(folders[:1], seconds)[0], "pages still move")  # noqa: E731
    monkeypatch.setattr("pondstack_agent.drivers.cxl.privileged.offline_blocks", some)
    with pytest.raises(DeviceFailed, match="1 of 2 memory blocks"):
        driver.detach("a")
    assert driver.evacuations() == {NODE: 1}


def test_an_attach_that_is_undone_counts(start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = start()
    driver.attach(grant("b", 2, 1))
    monkeypatch.setattr("pondstack_agent.drivers.cxl.amount.check_node", _refuse)
    with pytest.raises(DeviceFailed):
        driver.attach(grant("a", 0, 2))
    assert driver.evacuations() == {NODE: 1}


def test_a_new_life_counts_one_as_the_former_may_have_been_killed(start) -> None:
    assert start().evacuations() == {}
    start().attach(grant("b", 2, 1))
    assert start().evacuations() == {NODE: 1}


def _refuse(*_arguments: object) -> None:
    raise DeviceFailed("less is online than guests hold")
