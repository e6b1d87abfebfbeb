"""The controller's keeper of sleeping hosts for one emulated host: its ledger is SQLite, its Nova is played."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from pondstack.clients.bmc import Bmc
from pondstack.clients.nova import ComputeService
from pondstack.controller.sleep.actor import Actor
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

from .sleeping_host import SleepingHost

STATE_SECONDS = 400.0
DOWN_SECONDS = 20.0
LEASE_SECONDS = 3600.0


class Keeper:
    """One leader's; `limits`: as [sleep] has them."""

    def __init__(self, sleeper: SleepingHost, database: Database, bmc: Bmc, executor: ThreadPoolExecutor) -> None:
        self.host = sleeper.name
        self.limits = Limits()
        self._ledger = ledger = Ledger(
            database, take_over(database, "test", LEASE_SECONDS), store=SQL, lease_seconds=LEASE_SECONDS
        )
        ledger.hosts.heartbeat(report(self.host, pools=[]))
        nova, placement = PlayedNova(), SimpleNamespace(host_provider=lambda _name: None)
        nova.services[self.host] = ComputeService("id", self.host, True, "", True)
        reader = SqlReader(database, agent_down_seconds=DOWN_SECONDS)
        bmcs, played = {self.host: bmc}, (nova, placement)
        observer = Observer(
            ledger, reader, *played, sleeper.hasty, sleeper.wakers, bmcs, escrows=False, down_seconds=DOWN_SECONDS
        )
        actor = Actor(
            ledger, nova, sleeper.agents, sleeper.wakers, bmcs, admit=lambda: None, fence=lambda *_words: None
        )
        self.nova = nova
        self._keeper = SleepKeeper(
            ledger, nova, sleeper.agents, observer, actor, limits=lambda: self.limits, executor=executor
        )

    def suspend(self, driver: str) -> None:
        """Order it as an operator does, of a host that lends by itself already."""
        self._keeper.suspend(self.host, driver, 0)

    def wake(self) -> None:
        """Order it."""
        self._keeper.wake(self.host)

    @property
    def sleep(self) -> HostSleep:
        """The newest sleep."""
        found = self._ledger.host_sleeps.newest(self.host)
        assert found is not None
        return found

    def until(self, *states: SleepState) -> HostSleep:
        """Go round until the host is in one of some states."""

        def there() -> bool:
            self._keeper.run()
            return self.sleep.state in states

        assert wait_until(there, STATE_SECONDS), self.sleep
        return self.sleep


@contextmanager
def keeper(sleeper: SleepingHost, folder: Path, bmc: Bmc) -> Iterator[Keeper]:
    """Have a leader for a host."""
    database = Database.from_url(migrate(folder / "ledger.db"), retry_seconds=10)
    try:
        with ThreadPoolExecutor(1) as executor:
            yield Keeper(sleeper, database, bmc, executor)
    finally:
        database.dispose()
