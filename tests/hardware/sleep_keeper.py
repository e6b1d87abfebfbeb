"""The controller's keeper of sleeping hosts for one emulated host: its ledger is SQLite, its Nova is played."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pondstack.clients.nova import ComputeService
from pondstack.controller.lending.host_lends import HostLends
from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.doorbells import Doorbells
from pondstack.controller.sleep.keeper import SleepKeeper
from pondstack.controller.sleep.observer import Observer
from pondstack.db.connection.engine import Database
from pondstack.db.read.reader import SqlReader
from pondstack.db.store import SQL
from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.host_sleep_step import Limits
from pondstack.ledger.ledger import Ledger
from pondstack_rack.wait import wait_until
from tests.fixtures.ledgers import report
from tests.fixtures.played_plans import PlayedNova
from tests.fixtures.schema import migrate
from tests.fixtures.take_over import take_over

from .emulated_bmc import EmulatedBmc, emulated_bmc
from .sleeping_host import SleepingHost

STATE_SECONDS = 400.0
"""A host has to come so far: that its waker starts takes minutes on a busy machine."""

DOWN_SECONDS = 20.0
LEASE_SECONDS = 3600.0
CONFIRM_SECONDS = 2.0
"""Its agent, which is asked by the keeper only, has been silent for so long and an answer's time beside."""


class Keeper:
    """One leader's. `bmc`: what it reaches the host by, out of band; `ringers`: who is to ring for it."""

    def __init__(
        self,
        sleeper: SleepingHost,
        database: Database,
        bmc: EmulatedBmc,
        executor: ThreadPoolExecutor,
        agents: "RingersAgents",
    ) -> None:
        self.ringers: tuple[str, ...] = ()
        self.host, self.bmc = sleeper.name, bmc
        self._limits = Limits(
            suspend_seconds=STATE_SECONDS, confirm_seconds=CONFIRM_SECONDS, wake_seconds=STATE_SECONDS
        )
        self._ledger = ledger = Ledger(
            database, take_over(database, "test", LEASE_SECONDS), store=SQL, lease_seconds=LEASE_SECONDS
        )
        ledger.hosts.heartbeat(report(self.host, pools=[]))
        nova, placement = PlayedNova(), SimpleNamespace(host_provider=lambda _name: None)
        nova.services[self.host] = ComputeService("id", self.host, True, "", True)
        reader = SqlReader(database, agent_down_seconds=DOWN_SECONDS)
        bmcs, played = {self.host: bmc.redfish}, (nova, placement)
        observer = Observer(
            ledger, reader, *played, sleeper.hasty, sleeper.wakers, bmcs, escrows=False, down_seconds=DOWN_SECONDS
        )
        actor = Actor(
            ledger,
            nova,
            sleeper.agents,
            sleeper.wakers,
            bmcs,
            lends=HostLends(ledger, sleeper.agents, lambda: None),
            admit=lambda: None,
            fence=lambda *_words: None,
            doorbells=Doorbells(agents, agents, lambda _host: self.ringers),
        )
        self._keeper = SleepKeeper(
            ledger, nova, sleeper.agents, observer, actor, limits=lambda: self._limits, executor=executor
        )

    def sleep(self, driver: str) -> None:
        """Have the host, which lends by itself already, sleep as an operator orders it."""
        self._keeper.suspend(self.host, driver, 0)
        self._until(SleepState.ASLEEP)

    def wake(self) -> None:
        """Have it wake as an operator orders it."""
        self._keeper.wake(self.host)
        self._until(SleepState.AWAKE)

    def call(self) -> str:
        """Order it, until the host was called; returns by what."""
        self._keeper.wake(self.host)
        assert wait_until(lambda: self._keeper.run() and bool(self._sleep.work.called_by), STATE_SECONDS), self._sleep
        return self._sleep.work.called_by

    def until_awake(self) -> None:
        """Go on until a host that was called is awake."""
        self._until(SleepState.AWAKE)

    def wake_until_reset(self) -> None:
        """Order it, of a host that does not wake, until its BMC has cycled its power."""
        patient, self._limits = self._limits, replace(self._limits, wake_seconds=1.0)
        self._keeper.wake(self.host)
        assert wait_until(lambda: self._keeper.run() and self._sleep.work.was_reset, STATE_SECONDS), self._sleep
        self._limits = patient

    @property
    def _sleep(self) -> HostSleep:
        found = self._ledger.host_sleeps.newest(self.host)
        assert found is not None
        return found

    def _until(self, state: SleepState) -> None:
        def there() -> bool:
            self._keeper.run()
            return self._sleep.state is state

        assert wait_until(there, STATE_SECONDS), self._sleep


class RingersAgents:
    """The agents of a sleeper and of who rings for it; the latter is an object of a host, as its agent has it."""

    def __init__(self, sleeper: SleepingHost, ringer: Any) -> None:
        self.arm_doorbell = sleeper.agents.arm_doorbell
        self._ringer = ringer

    def connect_doorbell(self, _ringer: str, *, epoch: int, operation_id: str, sleeper: str, ring: Any) -> None:
        """Connect."""
        del epoch
        self._ringer.connect(sleeper, operation_id, ring)

    def ring_doorbell(self, _ringer: str, *, epoch: int, operation_id: str, sleeper: str) -> None:
        """Ring."""
        del epoch
        self._ringer.ring(sleeper, operation_id)


@contextmanager
def keeper(sleeper: SleepingHost, folder: Path, ringer: Any) -> Iterator[Keeper]:
    """Have a leader for a host; `ringer` rings for it."""
    database = Database.from_url(migrate(folder / "ledger.db"), retry_seconds=10)
    try:
        with ThreadPoolExecutor(1) as executor, emulated_bmc(sleeper.host) as bmc:
            yield Keeper(sleeper, database, bmc, executor, RingersAgents(sleeper, ringer))
    finally:
        database.dispose()
