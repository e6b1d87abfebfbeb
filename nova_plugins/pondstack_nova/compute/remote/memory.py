"""The virt driver's calls of pondstack-agent for remote memory: borrow it, have it served to a guest, give it back."""

import uuid
from collections.abc import Callable
from typing import Any

import oslo_messaging
from nova.i18n import _
from oslo_log import log as logging

from pondstack.domain.errors import Conflict, PondError, Unavailable
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable, unavailable

LOG = logging.getLogger(__name__)

_Bus = oslo_messaging.MessagingException


class RemoteMemoryUnavailable(PoolMemoryUnavailable):
    """Remote memory could not be had here; Nova tries another host."""

    msg_fmt = _("Remote memory is not available: %(reason)s")


class RemoteMemory:
    """What guests have borrowed. Thread-safe; asks as PoolAttachments does, whose patience and breakers it shares."""

    def __init__(self, agents: Callable[[], PoolAttachments]) -> None:
        self._agents = agents

    def borrow(
        self,
        host: str,
        consumer_uuid: str,
        mib: int,
        *,
        project_id: str,
        user_id: str,
        patient: bool = False,
        source: str = "",
    ) -> bool:
        """Have so much borrowed for a guest on a host; True when that is new. Raises RemoteMemoryUnavailable.

        Something else that it has, as of another flavor, goes back first. `source`: the host that it is to come from.
        """
        operation_id = str(uuid.uuid4())
        try:
            present = self._agents().insist(
                host, lambda api: api.get_remote(host, consumer_uuid=consumer_uuid), patient
            )
            if present and present["guaranteed"] and present["mib"] == mib and present["state"] == "active":
                return False
            if present and not self.give_back(host, consumer_uuid):
                raise Conflict(f"it has {present['mib']} MiB of remote memory, which did not go back; stop it first")
            self._agents().while_it_raises(  # what it had before may be on its way back
                Conflict,
                lambda: self._agents().insist(
                    host,
                    lambda api: api.alloc_ext(
                        host,
                        operation_id=operation_id,
                        consumer_uuid=consumer_uuid,
                        mib=mib,
                        project_id=project_id,
                        user_id=user_id,
                        source=source,
                    ),
                    patient,
                ),
            )
        except (PondError, _Bus) as error:
            if not isinstance(error, _Bus):
                self.give_back(host, consumer_uuid)
            raise self._failed(error, host, consumer_uuid, f"{mib} MiB not borrowed", patient) from error
        LOG.info("Borrowed %d MiB for %s on %s", mib, consumer_uuid, host)
        return True

    def extend(self, host: str, consumer_uuid: str, *, memory_mib: int, local_mib: int, disk_mib: int = 0) -> None:
        """Have a guest's process served, before it runs; raises RemoteMemoryUnavailable.

        `disk_mib`: of what leaves, so much has no room with lenders.
        """
        amounts = {"memory_mib": memory_mib, "local_mib": local_mib, "disk_mib": disk_mib}
        try:
            self._agents().insist(
                host,
                lambda api: api.extend(host, consumer_uuid=consumer_uuid, **amounts),
                False,
            )
        except (PondError, _Bus) as error:
            what = f"{local_mib} of {memory_mib} MiB local, and the rest not served"
            raise self._failed(error, host, consumer_uuid, what, False) from error
        LOG.info("The memory of %s on %s is served: %d of %d MiB local", consumer_uuid, host, local_mib, memory_mib)

    def move(
        self, source: str, host: str, consumer_uuid: str, *, memory_mib: int, local_mib: int, disk_mib: int
    ) -> None:
        """Have a guest's memory be handed over from its source to a host where it is about to come by libvirt.

        Raises RemoteMemoryUnavailable; the source's offer may stand then, until its nova-compute takes the guest back.
        """
        amounts = {"memory_mib": memory_mib, "local_mib": local_mib, "disk_mib": disk_mib}
        self._agents().hear_of_revocations(host)
        try:
            public = self._agents().insist(host, lambda api: api.expect_guest(host, consumer_uuid=consumer_uuid), False)
            origin = self._agents().insist(
                source, lambda api: api.hand_over(source, consumer_uuid=consumer_uuid, public=public), False
            )
            self._agents().insist(
                host,
                lambda api: api.receive_guest(host, consumer_uuid=consumer_uuid, **amounts, origin=origin),
                False,
            )
        except (PondError, _Bus) as error:
            raise self._failed(error, host, consumer_uuid, f"not handed over by {source}", False) from error
        LOG.info("The memory of %s is handed over from %s to %s once it is here", consumer_uuid, source, host)

    def take_back(self, host: str, consumer_uuid: str) -> bool:
        """Have a guest that was to leave a host go on there; True when that is so.

        Never raises: what fails is logged, and the agent takes the guest back by itself later.
        """
        try:
            self._agents().while_it_raises(
                Unavailable, lambda: self._agents().client().take_back(host, consumer_uuid=consumer_uuid)
            )
        except (PondError, _Bus) as error:
            LOG.warning("The memory of %s was not taken back on %s: %s", consumer_uuid, host, error)
            return False
        return True

    def give_back(self, host: str, consumer_uuid: str) -> bool:
        """Give back what a guest that is gone has borrowed; True when it is on its way, or there was nothing.

        Never raises: the end of a guest does not wait for us. What fails is logged; the reconciler gets it later.
        """
        breaker = self._agents().breaker(host)
        if not breaker.admit():
            LOG.info(
                "pondstack-agent on %s is silent: it was not asked to give back what %s borrowed", host, consumer_uuid
            )
            return False
        try:
            # The data plane learns that a guest's process ended a moment after Nova does.
            done = self._agents().while_it_raises(
                Conflict, lambda: self._agents().client().release_remote(host, consumer_uuid=consumer_uuid)
            )
        except (PondError, _Bus) as error:
            if isinstance(error, _Bus):
                breaker.failed()
            LOG.warning(
                "What %s may have borrowed on %s was not given back: %s. It comes back once the agent answers",
                consumer_uuid,
                host,
                error,
            )
            return False
        breaker.succeeded()
        if done:
            LOG.info("Gave back what %s borrowed on %s", consumer_uuid, host)
        return True

    def _failed(self, error: Any, host: str, consumer_uuid: str, what: str, patient: bool) -> PoolMemoryUnavailable:
        where = f"host {host}, consumer {consumer_uuid}, {what}"
        return unavailable(error, where, self._agents().waited(error, patient), RemoteMemoryUnavailable)
