"""Has hosts hold slices for themselves: claim, hold; give back, unclaim (pondstack.domain.host_slices).

All of it compares states: what is wanted and held in the ledger, and what is claimed in Placement. The next round, or
the next leader, goes on wherever the last one ended.
"""

from collections.abc import Callable, Mapping
from uuid import uuid4

import oslo_messaging
from oslo_log import log

from pondstack.clients.placement import Placement
from pondstack.controller.pool.offline import take_offline
from pondstack.controller.pool.snapshot import unusable_hosts
from pondstack.domain.causes import Cause
from pondstack.domain.errors import AgentUnavailable, HostUnusable, NotLeader, PondError, PoolShortage
from pondstack.domain.host_slices import Act, Holding, Step, steps
from pondstack.domain.purpose import Purpose, check_node
from pondstack.domain.rack import RackView
from pondstack.domain.requests import AssignRequest
from pondstack.domain.states import SliceState
from pondstack.domain.units import RESOURCE_CLASS
from pondstack.ledger.ledger import Ledger
from pondstack.rpc.agent_api import AgentAPI
from pondstack.rpc.former import does_not_know

LOG = log.getLogger(__name__)


class HostSliceKeeper:
    """One leader's. run() is for one thread. `placement` None: Placement is not used, and nobody else sells slices.

    `changed` is called when slices came back, or went.
    """

    def __init__(
        self,
        ledger: Ledger,
        view: Callable[[], RackView],
        agents: AgentAPI,
        placement: Placement | None,
        changed: Callable[[], object],
        down_seconds: float,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ledger, self._view, self._agents, self._placement = ledger, view, agents, placement
        self._changed, self._down, self._stopping = changed, down_seconds, stopping

    def run(self) -> None:
        """Do one round: each holding by itself, and what one of them waits for is said with it."""
        view = self._view()
        for holding in view.holdings.values():
            if self._stopping():
                return
            try:
                reason = self._keep(view, holding)
            except NotLeader:
                raise
            except PondError as error:
                LOG.debug("%s slices of host %s wait: %s", holding.purpose, holding.host, error)
                reason = error.message
            self._ledger.holdings.note(holding, reason)

    def _keep(self, view: RackView, holding: Holding) -> str:
        """Take the next step for each host slice; return what some of them wait for. Raises what the first meets."""
        held, aside = _held(view, holding)
        claimed = self._claimed(holding, held)
        report = view.hosts.get(holding.host)
        dead = report is None or report.fenced is not None
        waits = ""
        for step in steps(holding, held, claimed, aside=aside, dead=dead):
            waits = self._take(view, holding, step) or waits
        if not holding.wanted and not held and not claimed:
            self._ledger.holdings.end(holding.key)
        return waits or (f"host {holding.host} is fenced" if dead and holding.wanted else "")

    def _claimed(self, holding: Holding, held: Mapping[str, str]) -> set[str]:
        """Return the consumers of a holding that claim a slice; without Placement all that need one."""
        if self._placement is None:
            return {*held, *(holding.key.consumer(number) for number in range(holding.wanted))}
        claims = self._placement.allocations_of(holding.pool_uuid) or {}
        mine = holding.key.numbers(consumer for consumer, held in claims.items() if held.get(RESOURCE_CLASS))
        return set(mine.values())

    def _take(self, view: RackView, holding: Holding, step: Step) -> str:
        """Take one step; return what it waits for."""
        if step.act is Act.UNCLAIM:
            self._unclaim(step)
            return ""
        if step.act is Act.CLAIM and step.allocation_uuid:
            self._claim(view, holding, step)  # it lost its claim and still has its slice
            return ""
        self._demand_usable(view, holding, step)
        if step.act is Act.GIVE_BACK:
            return self._give_back(view, holding, step)
        check_node(holding.purpose, _purposes(view, holding), holding.host, view.pools[holding.pool_uuid].pool.name)
        if step.act is Act.CLAIM:
            self._claim(view, holding, step)
        self._hold(view, holding, step)
        return ""

    def _demand_usable(self, view: RackView, holding: Holding, step: Step) -> None:
        """Raise HostUnusable for a host that nothing can be asked of now, and of one that gets nothing new."""
        report = view.hosts[holding.host]
        if report.age_seconds > self._down:
            raise HostUnusable(f"its agent is silent for {report.age_seconds:.0f} s")
        if step.act is not Act.GIVE_BACK and (why := unusable_hosts(view, self._down).get(holding.host)):
            raise HostUnusable(why)

    def _claim(self, view: RackView, holding: Holding, step: Step) -> None:
        pool = view.pools[holding.pool_uuid].pool
        assert self._placement is not None
        claim = {step.consumer_uuid: pool.slice_mib}
        if not self._placement.claim(pool.uuid, RESOURCE_CLASS, claim, still=self._ledger.renew):
            raise PoolShortage(
                f"Placement has no {pool.slice_mib} MiB of pool {pool.name} to spare: the rest is claimed, or kept as "
                "the free buffer; delete or move guests, or ask for fewer slices"
            )

    def _hold(self, view: RackView, holding: Holding, step: Step) -> None:
        """Have the host get the slice; one attempt that goes on there unanswered is found by the next.

        The order is for the host as `view` shows it, where its claim rests: the ledger refuses it after any change.
        """
        order = holding.key.order(view.hosts[holding.host].generation, uuid4())
        request = AssignRequest(
            step.consumer_uuid,
            holding.host,
            holding.pool_uuid,
            view.pools[holding.pool_uuid].pool.slice_mib,
            0,
            purpose=holding.purpose,
        )
        try:
            self._agents.hold(epoch=self._ledger.epoch, operation_id=order, request=request)
        except oslo_messaging.MessagingException as error:
            raise unanswered(holding.host, error, "hold slices for its host") from error
        LOG.info("Host %s holds a slice of pool %s as %s", holding.host, holding.pool_uuid, holding.purpose)
        self._changed()

    def _give_back(self, view: RackView, holding: Holding, step: Step) -> str:
        stuck = view.hosts[holding.host].stuck.get(step.allocation_uuid)
        if stuck is not None:
            return f"allocation {step.allocation_uuid} does not go offline: {stuck}"
        if take_offline(self._ledger, self._agents, holding.host, step.allocation_uuid):
            self._changed()
            return ""
        return f"allocation {step.allocation_uuid} is on its way back"

    def _unclaim(self, step: Step) -> None:
        assert self._placement is not None
        self._ledger.renew()
        self._placement.drop_claim(step.consumer_uuid)


def _held(view: RackView, holding: Holding) -> tuple[dict[str, str], set[str]]:
    """Return the allocations of a holding by consumer, and the consumers whose slices are set aside for good."""
    mine = {
        aged.item.consumer_uuid: uuid
        for uuid, aged in view.allocations.items()
        if (aged.item.host, aged.item.pool_uuid, aged.item.purpose)
        == (holding.host, holding.pool_uuid, holding.purpose)
    }
    consumers = {uuid: consumer for consumer, uuid in mine.items()}
    aside = {
        consumers[uuid]
        for aged in view.slices
        if (uuid := aged.item.allocation_uuid) in consumers
        and aged.item.state is SliceState.QUARANTINED
        and aged.item.cause is not Cause.AGENT_DOWN  # it may go back to where it was
    }
    return mine, aside


def _purposes(view: RackView, holding: Holding) -> set[Purpose]:
    mine = (aged.item for aged in view.allocations.values())
    return {item.purpose for item in mine if (item.host, item.pool_uuid) == (holding.host, holding.pool_uuid)}


def unanswered(host: str, error: oslo_messaging.MessagingException, cannot: str) -> PondError:
    """Return what to raise for a command that an agent did not answer, or does not know: what it `cannot`."""
    if does_not_know(error):
        return HostUnusable(f"upgrade the agent of host {host}: it cannot {cannot}")
    return AgentUnavailable(f"the agent of {host} does not answer ({type(error).__name__})")
