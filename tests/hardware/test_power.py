"""Power drivers on a real kernel: a host in lowpower-s0 serves RDMA while user space stands still; a BMC ends S3.

Agent, waker and lender are those of an installation, as is the controller's keeper of sleeping hosts; Nova is played.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pondstack.domain.host_sleep import SleepState
from pondstack_rack.servers import RabbitMQServer
from pondstack_rack.wait import wait_until
from tests.fixtures.identities import Identities

from .conftest import Hardware
from .emulated_bmc import EmulatedBmc, emulated_bmc
from .figures import Figures
from .host import EmulatedHost
from .rdma_hosts import ADDRESSES, two_hosts
from .sleep_keeper import Keeper, keeper
from .sleeping_host import BUFFER_MIB, SleepingHost

pytestmark = [pytest.mark.hardware, pytest.mark.timeout(1500)]

LENDER_MIB = 768
SEED = 20183
SECONDS = 240.0
"""For what an emulated host does in the background, on a busy machine."""


@dataclass
class Bed:
    """Two hosts: one that lends and sleeps, with its BMC and its keeper, and one that borrows."""

    sleeper: SleepingHost
    borrower: EmulatedHost
    bmc: EmulatedBmc
    keeper: Keeper


@pytest.fixture(scope="module")
def bed(hardware: Hardware, rabbitmq: RabbitMQServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("power")
    with two_hosts(hardware, folder, LENDER_MIB) as (lender, borrower):
        sleeper = SleepingHost(lender, ADDRESSES[0], rabbitmq, Identities(folder / "credentials"))
        sleeper.start()
        with emulated_bmc(lender) as bmc, keeper(sleeper, folder, bmc.redfish) as leader:
            yield Bed(sleeper, borrower, bmc, leader)
        sleeper.close()


def stands_still(sleeper: SleepingHost) -> bool:
    """Whether all that is not to serve is frozen, on one CPU."""
    return sleeper.cpus() == "0" and sleeper.frozen() == {
        "agent": True,
        "tenant": True,
        "lender": False,
        "waker": False,
    }


def goes_on(sleeper: SleepingHost) -> bool:
    """Whether a process that has nothing to do with it comes further."""
    before = sleeper.counted()
    return wait_until(lambda: sleeper.counted() > before, SECONDS)


def test_a_host_in_lowpower_s0_serves_rdma_and_is_woken_over_the_bus(bed: Bed, figures: Figures) -> None:
    sleeper = bed.sleeper
    ticket, keys = sleeper.lend(2 * BUFFER_MIB, "borrower")
    borrower = bed.borrower.remote("tests.hardware.guest.rdma:Borrowing", ticket=ticket)
    borrower.open(keys)
    bed.keeper.suspend("lowpower-s0")
    bed.keeper.until(SleepState.ASLEEP)
    assert wait_until(lambda: stands_still(sleeper), SECONDS), (sleeper.cpus(), sleeper.frozen())
    before = sleeper.counted()
    writing = borrower.write_all(keys, SEED)
    reading, wrong = borrower.read_all(keys, SEED + 1)
    figures.add("from a host in lowpower-s0, in pieces", wrong, "wrong", "= 0")
    figures.add("from a host in lowpower-s0, random order", 2 * BUFFER_MIB / reading, "MiB/s")
    figures.add("to a host in lowpower-s0, random order", 2 * BUFFER_MIB / writing, "MiB/s")
    assert wrong == 0
    assert sleeper.counted() == before
    assert stands_still(sleeper)
    bed.keeper.wake()
    bed.keeper.until(SleepState.AWAKE)
    assert sleeper.cpus() == "0-1"
    assert not any(sleeper.frozen().values())
    assert goes_on(sleeper)
    assert bed.bmc.orders == []
    assert borrower.read_all(keys, SEED + 2)[1] == 0


def test_a_host_in_s3_is_woken_by_its_bmc(bed: Bed) -> None:
    """Once per boot: under emulation the next one would not really sleep."""
    sleeper = bed.sleeper
    bed.keeper.suspend("s3")
    bed.keeper.until(SleepState.ASLEEP)
    assert wait_until(lambda: sleeper.host.state == "suspended", SECONDS)
    bed.keeper.wake()
    bed.keeper.until(SleepState.AWAKE)
    assert sleeper.host.state == "running"
    assert bed.bmc.orders == ["On"]
    assert goes_on(sleeper)
