"""Joins what a leader has for hosts that sleep: the keeper, its thread, its RPC endpoint."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from pondstack.controller.gate import Gate
from pondstack.controller.lending.host_lends import HostLends
from pondstack.controller.resources import ControllerResources
from pondstack.controller.sleep.actor import Actor
from pondstack.controller.sleep.doorbells import Doorbells, ringers
from pondstack.controller.sleep.endpoint import SleepEndpoint
from pondstack.controller.sleep.keeper import SleepKeeper
from pondstack.controller.sleep.observer import Observer
from pondstack.controller.workers import PeriodicWorker
from pondstack.domain.errors import Conflict
from pondstack.domain.host_sleep import HostSleep
from pondstack.domain.host_sleep_step import Limits
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.waker_api import WakerAPI

STOP_SECONDS = 60.0


class HostSleeps:
    """Those of one epoch. `keeper` None: there is no Placement, and no host is put to sleep."""

    def __init__(
        self,
        resources: ControllerResources,
        ledger: Ledger,
        agents: Callable[[float], AgentAPI],
        executor: Executor,
        gate: Gate,
        *,
        lends: HostLends,
        admit: Callable[[], object],
        fence: Callable[[str, str], object],
        changed: Callable[[HostSleep], object],
    ) -> None:
        """`agents(seconds)`: a client whose calls take so long at most; `admit`, `fence`: see Actor."""
        self._group = group = resources.conf.sleep
        self._ledger = ledger
        self._looks = self._any = True
        self._stopping = False
        self._worker = PeriodicWorker("sleeps", group.interval_seconds, self._round)
        self.keeper: SleepKeeper | None = None
        if resources.placement is not None and resources.servers is not None:
            nova, bmcs = resources.servers, resources.bmcs
            patient, hasty = agents(resources.conf.controller.agent_timeout_seconds), agents(group.call_seconds)
            wakers = WakerAPI(resources.bus, group.call_seconds)
            observer = Observer(
                ledger,
                resources.reader,
                nova,
                resources.placement,
                hasty,
                wakers,
                bmcs,
                escrows=resources.sealer is not None,
                down_seconds=resources.conf.controller.agent_down_seconds,
            )
            doorbells = Doorbells(
                patient,
                hasty,
                lambda host: ringers(
                    resources.reader.rack(), host, group.doorbell_hosts, resources.conf.controller.agent_down_seconds
                ),
            )
            self.keeper = SleepKeeper(
                ledger,
                nova,
                patient,
                observer,
                Actor(ledger, nova, patient, wakers, bmcs, lends=lends, admit=admit, fence=fence, doorbells=doorbells),
                limits=self._limits,
                executor=executor,
                changed=changed,
                wake=self._wake,
                stopping=lambda: self._stopping,
                wakeable=bmcs.keys(),
                clock=resources.clock,
            )
        self.endpoint = SleepEndpoint(
            keeper=self._present, reader=resources.reader, driver=lambda: str(group.driver), gate=gate
        )

    def _present(self) -> SleepKeeper:
        if self.keeper is None:
            raise Conflict("[placement] enabled is off: without Nova and Placement no host is put to sleep")
        return self.keeper

    def suspend(self, host: str, operation_id: str, *, disabled_by: str) -> HostSleep:
        """Begin to put a host to sleep by [sleep] driver; else as SleepKeeper.suspend()."""
        return self._present().suspend(host, str(self._group.driver), None, operation_id, disabled_by=disabled_by)

    def wake(self, host: str, operation_id: str) -> HostSleep:
        """Have a host wake; raises Conflict: it is awake."""
        return self._present().wake(host, operation_id)

    def newest(self, host: str) -> HostSleep | None:
        """Return a host's newest sleep, one that has ended, too."""
        return self._ledger.host_sleeps.newest(host)

    def begun(self, operation_id: str) -> HostSleep | None:
        """Return the sleep that began by an operation; raises NotFound: it is forgotten since."""
        uuid = self._ledger.host_sleeps.begun(operation_id)
        return None if uuid is None else self._ledger.host_sleeps.get(uuid)

    def unended(self) -> Sequence[HostSleep]:
        """Return those that are open; the database is asked only while there may be some."""
        return self._ledger.host_sleeps.unended() if self._any else ()

    def start(self) -> None:
        """Go on with what former leaders began."""
        if self.keeper is not None:
            self._worker.start()

    def stop(self) -> None:
        """End after the step in hand."""
        self._stopping = True
        self._worker.stop(STOP_SECONDS)

    def _wake(self) -> None:
        self._looks = self._any = True
        self._worker.wake()

    def _round(self) -> None:
        """Look, unless none is open: all of this epoch's have begun here."""
        if self.keeper is None or not self._looks:
            return
        self._looks = False
        still = True
        try:
            still = self.keeper.run()
        finally:
            self._looks = self._any = self._looks or still

    def _limits(self) -> Limits:
        group = self._group
        return Limits(
            lend_seconds=group.lend_seconds,
            suspend_seconds=group.suspend_seconds,
            confirm_seconds=group.confirm_seconds,
            wake_seconds=group.wake_seconds,
            retry_seconds=group.retry_seconds,
            deeper_driver=group.deeper_driver,
            deeper_seconds=group.deeper_seconds,
        )
