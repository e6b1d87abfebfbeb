"""Tiering at run time: what an operator ordered goes before the agent's options, over restarts of agent and host."""

from oslo_log import log

from pondstack.domain.errors import HostUnusable, PondError
from pondstack_agent.drivers import HostPools
from pondstack_agent.records import Records
from pondstack_agent.tiering.tiering import Tiering

LOG = log.getLogger(__name__)

ORDER = "order"


class TieringSwitch:
    """The order of one host: True, False, or None for the agent's options. On disk, so that a restart keeps it."""

    def __init__(self, tiering: Tiering, pools: HostPools, records: Records) -> None:
        self._tiering, self._pools, self._records = tiering, pools, records
        found = records.get(ORDER)
        self._ordered: bool | None = found["on"] if found else None
        tiering.switch(self._ordered)

    def order(self, on: bool | None) -> None:
        """Obey an order. Raises HostUnusable, and nothing is changed, where the kernel cannot demote to pool memory."""
        if on == self._ordered:
            return
        if on and not self._pools.nodes:
            raise HostUnusable(
                "the pool memory of this host is no memory node of its kernel (see [agent] drivers): nothing can be "
                "demoted to it"
            )
        self._tiering.switch(on)
        if on and (why := self._tiering.refused("demotion")):
            self._tiering.switch(self._ordered)
            raise HostUnusable(f"the kernel of this host does not demote: {why}")
        if on is None:
            self._records.remove(ORDER)
        else:
            self._records.put(ORDER, {"on": on})
        self._ordered = on
        LOG.info("Tiering is %s", {True: "on, by order", False: "off, by order", None: "as configured"}[on])

    def follow(self, on: bool | None) -> None:
        """Obey what a heartbeat's answer says; what cannot be is logged."""
        try:
            self.order(on)
        except PondError as error:
            LOG.warning("Tiering stays as it is: %s", error)
