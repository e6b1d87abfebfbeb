"""Does what a sleep's next step says: at Nova, in the ledger's lends, at the agent, at the waker, or at the BMC.

Commands to an agent carry the epoch and an id of the sleep's own: what a former leader began is what this one repeats.
"""

from collections.abc import Callable, Mapping

import oslo_messaging
from oslo_log import log

from pondstack.clients.bmc import Bmc
from pondstack.clients.nova import Nova
from pondstack.controller.lending.host_lends import HostLends
from pondstack.controller.lending.lenders import call_agent
from pondstack.controller.sleep.doorbells import Doorbells
from pondstack.controller.sleep.observer import operation, suspension
from pondstack.domain.admission import LendStage
from pondstack.domain.errors import BadRequest, HostUnusable, PondError
from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState
from pondstack.domain.host_sleep_step import Act, Seen, Step
from pondstack.domain.lending import LenderKind
from pondstack.domain.power import mode_of
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.former import does_not_know
from pondstack.rpc.waker_api import WakerAPI

LOG = log.getLogger(__name__)

NOTHING_WAKES = "nothing is known that wakes it: see [sleep] bmc_file, or wake it by hand"
RETRY_SECONDS = 60.0
"""So long a host has to take its memory back, before it is told anew: what its device had not ended may be by then."""


class Actor:
    """One leader's. `admit` wakes who has hosts lend; `fence` takes a dead host's memory from the rack.

    `doorbells` None: hosts are woken over the bus only.
    """

    def __init__(
        self,
        ledger: Ledger,
        nova: Nova,
        agents: AgentAPI,
        wakers: WakerAPI,
        bmcs: Mapping[str, Bmc],
        *,
        lends: HostLends,
        admit: Callable[[], object],
        fence: Callable[[str, str], object],
        doorbells: Doorbells | None = None,
    ) -> None:
        self._ledger, self._nova, self._agents, self._wakers, self._bmcs = ledger, nova, agents, wakers, bmcs
        self._lends, self._admit, self._fence_host, self._doorbells = lends, admit, fence, doorbells

    def act(self, item: HostSleep, step: Step, seen: Seen) -> Step:
        """Do it, and return the step as it turned out. Raises Unavailable, Conflict: look again later."""
        return self._work[step.act](self, item, step, seen)

    def _wait(self, _item: HostSleep, step: Step, _seen: Seen) -> Step:
        return step

    def _disable(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        service = self._nova.compute_service(item.host)
        if service is not None:
            self._nova.disable(service, DISABLED_REASON)
        return step

    def _enable(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        service = self._nova.compute_service(item.host)
        if service is not None:
            self._nova.enable(service)
        return step

    def _lend(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        mib = self._lends.whole_mib(item.host) if item.work.mib is None else item.work.mib
        if not mib:
            return Step(Act.WAIT, SleepState.SUSPENDING, lent_mib=0)
        self._ledger.lends.begin(operation(item, "lend"), item.host, mib, LenderKind.ZOMBIE)
        self._admit()
        return step

    def _suspend(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        """Tell it to, once others are connected to its doorbell: nobody is connected to a host that sleeps."""
        if self._doorbells is not None and mode_of(item.driver).has_doorbell and not item.work.ringers:
            step = step._replace(ringers=self._doorbells.connect(item, self._ledger.epoch))
        try:
            self._agents.suspend(item.host, epoch=self._ledger.epoch, operation_id=suspension(item), driver=item.driver)
        except (BadRequest, HostUnusable) as error:
            return Step(Act.WAIT, SleepState.WAKING, error.message, SleepState.FAILED)
        except oslo_messaging.MessagingTimeout:
            LOG.debug("Whether host %s has heard that it is to sleep is asked again", item.host)
        return step

    def _end(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        """Have it refuse the order to sleep, which may still be on its way to it, before its memory is its own."""
        try:
            host, epoch, order = item.host, self._ledger.epoch, suspension(item)
            told = call_agent(host, lambda: self._agents.end_suspension(host, epoch=epoch, operation_id=order))
        except oslo_messaging.MessagingException as error:
            if not isinstance(error, oslo_messaging.RPCVersionCapError) and not does_not_know(error):
                raise
            return step  # an agent of a former release: as it was before
        asleep = told["operation_id"] == order and told["state"] == "entering"
        return Step(Act.WAIT, SleepState.WAKING, item.reason) if asleep else step

    def _wake(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        by_bus, bmc = mode_of(item.driver).wakes_by_bus, self._bmcs.get(item.host)
        if by_bus and (by := self._called(item)):
            return step._replace(called_by=by)
        if bmc is None:
            return step if by_bus else step._replace(reason=step.reason or NOTHING_WAKES)
        try:
            bmc.wake()
        except PondError as error:
            return step._replace(reason=error.message)
        return step._replace(called_by="its BMC")

    def _called(self, item: HostSleep) -> str:
        """Call its waker; returns by what, "": by nothing.

        By turns, the doorbell first: nobody answers a ring, and a waker that did not hear it is called over the bus.
        """
        ways = (self._by_doorbell, self._by_bus)
        found = (way(item) for way in (ways if item.work.calls % 2 == 0 else reversed(ways)))
        by = next((name for name in found if name), "")
        if by:
            LOG.info("Host %s is called by %s", item.host, by)
        return by

    def _by_doorbell(self, item: HostSleep) -> str:
        ringer = self._doorbells.ring(item, self._ledger.epoch) if self._doorbells is not None else ""
        return f"its doorbell, which host {ringer} has rung" if ringer else ""

    def _by_bus(self, item: HostSleep) -> str:
        try:
            self._wakers.wake(item.host)
        except (PondError, oslo_messaging.MessagingException) as error:
            LOG.info("The waker of host %s does not answer: %s", item.host, error)
            return ""
        return "the bus"

    def _reset(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        LOG.warning("Host %s does not wake: its power is cycled", item.host)
        self._bmcs[item.host].reset()
        return step

    def _reclaim(self, item: HostSleep, step: Step, seen: Seen) -> Step:
        """Have it be an active lender again, which ends the keys in escrow, then take all of it back."""
        lend = self._ledger.lends.of_host(item.host)
        if lend is not None:
            if lend.stage is LendStage.WAITING:
                self._ledger.lends.end(lend, 0, "its host does not go to sleep")
            return step
        host, epoch, mib = item.host, self._ledger.epoch, seen.lent_mib
        turn = int(seen.seconds // RETRY_SECONDS)
        awake = operation(item, f"active {mib}")
        told = call_agent(
            host,
            lambda: self._agents.lend(host, epoch=epoch, operation_id=awake, mib=mib, kind=str(LenderKind.ACTIVE)),
        )
        if told["state"] == "done":
            back = operation(item, f"reclaim {mib} {turn}")
            call_agent(host, lambda: self._agents.reclaim(host, epoch=epoch, operation_id=back, mib=mib))
        return step

    def _fence(self, item: HostSleep, step: Step, _seen: Seen) -> Step:
        self._fence_host(item.host, step.reason)
        return step

    _work: Mapping[Act, Callable[["Actor", HostSleep, Step, Seen], Step]] = {
        Act.WAIT: _wait,
        Act.DISABLE: _disable,
        Act.LEND: _lend,
        Act.SUSPEND: _suspend,
        Act.END: _end,
        Act.WAKE: _wake,
        Act.RESET: _reset,
        Act.RECLAIM: _reclaim,
        Act.ENABLE: _enable,
        Act.FENCE: _fence,
    }
