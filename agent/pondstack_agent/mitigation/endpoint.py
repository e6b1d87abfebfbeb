"""RPC endpoint of pondstack-agent for mitigations (agent_mitigation_api).

`hold`, and an abort by its operation id, are of 1.6; without them a call of a former release means the same.
"""

from typing import Any

import oslo_messaging

from pondstack.rpc.agent_mitigation_api import HELD_MITIGATION_VERSION
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.locks import NamedLocks
from pondstack_agent.mitigation.domains import Domains
from pondstack_agent.mitigation.mitigations import Finish, Mitigations
from pondstack_agent.rpc_errors import answered


class MitigationEndpoint:
    """The methods that the controller calls. `finish` releases what a guest that runs on does not hold any more."""

    target = oslo_messaging.Target(version=HELD_MITIGATION_VERSION)

    def __init__(
        self, mitigations: Mitigations, domains: Domains, epoch: EpochGuard, consumers: NamedLocks, finish: Finish
    ) -> None:
        self._mitigations, self._domains, self._epoch = mitigations, domains, epoch
        self._consumers, self._finish = consumers, finish

    @answered
    def mitigate(
        self, _context: Any, *, epoch: int, operation_id: str, consumer_uuid: str, hold: bool = False
    ) -> dict[str, Any]:
        """Begin to move all pool pages of a guest to local memory; with `hold` the slices stay."""
        self._epoch.check(epoch)
        if hold:
            self._mitigations.check(consumer_uuid)  # first: its guest is moved to another host, which needs no libvirt
            self._domains.check()  # what cannot be rewritten shall not be moved
        with self._consumers.holding(consumer_uuid):
            self._epoch.check(epoch)  # another may lead since we wait
            return self._mitigations.begin(operation_id, consumer_uuid, self._finish, hold=hold).to_wire()

    @answered
    def get_mitigation(self, _context: Any, *, consumer_uuid: str) -> dict[str, Any] | None:
        """Return how far a guest's newest mitigation is, None when there was none."""
        found = self._mitigations.progress(consumer_uuid)
        return found.to_wire() if found else None

    @answered
    def abort_mitigation(
        self, _context: Any, *, epoch: int, consumer_uuid: str, operation_id: str = ""
    ) -> dict[str, Any]:
        """Stop a mitigation at its next chunk; one that is still on its way, by its id, never begins."""
        self._epoch.check(epoch)
        with self._consumers.holding(consumer_uuid):
            self._epoch.check(epoch)
            return self._mitigations.abort(consumer_uuid, operation_id).to_wire()

    @answered
    def rewrite_domain(self, _context: Any, *, epoch: int, operation_id: str, consumer_uuid: str) -> dict[str, Any]:
        """Bind what libvirt keeps of a guest to local memory; idempotent by what libvirt has."""
        del operation_id
        self._epoch.check(epoch)
        with self._consumers.holding(consumer_uuid):
            self._epoch.check(epoch)
            return self._domains.rewrite(consumer_uuid).to_wire()

    @answered
    def release_mitigated(self, _context: Any, *, epoch: int, operation_id: str, consumer_uuid: str) -> bool:
        """Release the slices of a mitigated guest that were held until now; True when nothing is held."""
        del operation_id
        self._epoch.check(epoch)
        return self._mitigations.release(consumer_uuid, self._finish)
