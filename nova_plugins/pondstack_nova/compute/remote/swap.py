"""The virt driver's calls of pondstack-agent for swap disks in remote memory: have one served, end it."""

from collections.abc import Callable
from typing import Any

import oslo_messaging
from nova.i18n import _
from oslo_log import log as logging

from pondstack.domain.errors import Conflict, PondError
from pondstack_nova.compute.agent_client import PoolAttachments, PoolMemoryUnavailable, unavailable

LOG = logging.getLogger(__name__)

_Bus = oslo_messaging.MessagingException


class SwapUnavailable(PoolMemoryUnavailable):
    """A swap disk could not be had here; Nova tries another host."""

    msg_fmt = _("The swap disk is not available: %(reason)s")


class Swap:
    """Swap disks of guests. Thread-safe; asks as PoolAttachments does, whose patience and breakers it shares."""

    def __init__(self, agents: Callable[[], PoolAttachments]) -> None:
        self._agents = agents

    def begin(
        self, host: str, consumer_uuid: str, mib: int, *, project_id: str, user_id: str, patient: bool = False
    ) -> bool:
        """Have a guest's swap disk there; True when it is new. Raises SwapUnavailable.

        One of another size, as of another flavor, is ended first.
        """
        try:
            present = self._agents().insist(host, lambda api: api.get_swap(host, consumer_uuid=consumer_uuid), patient)
            if present and (present["mib"], present["state"]) == (mib, "active"):
                return False
            if present and not self.end(host, consumer_uuid):
                raise Conflict(f"it has a swap disk of {present['mib']} MiB, which did not go away; stop it first")
            self._attach(host, consumer_uuid, mib, project_id, user_id, patient)
        except (PondError, _Bus) as error:
            if not isinstance(error, _Bus):
                self.end(host, consumer_uuid)
            raise self._failed(error, host, consumer_uuid, mib, patient) from error
        LOG.info("%s has a swap disk of %d MiB on %s", consumer_uuid, mib, host)
        return True

    def socket(self, host: str, consumer_uuid: str, mib: int, *, project_id: str, user_id: str) -> str:
        """Return where a guest's swap disk is served, which is about to start; raises SwapUnavailable.

        A disk whose pages were lost, as with its host, is made anew, empty.
        """
        try:
            return self._attach(host, consumer_uuid, mib, project_id, user_id, patient=False)
        except (PondError, _Bus) as error:
            raise self._failed(error, host, consumer_uuid, mib, patient=False) from error

    def end(self, host: str, consumer_uuid: str) -> bool:
        """End the swap disk of a guest that is gone; True when it is on its way, or there was none.

        Never raises: the end of a guest does not wait for us. What fails is logged.
        """
        breaker = self._agents().breaker(host)
        if not breaker.admit():
            LOG.info("pondstack-agent on %s is silent: it was not asked to end %s's swap disk", host, consumer_uuid)
            return False
        try:
            # QEMU's connection is noticed to have ended a moment after Nova has ended the guest.
            self._agents().while_it_raises(
                Conflict, lambda: self._agents().client().release_swap(host, consumer_uuid=consumer_uuid)
            )
        except (PondError, _Bus) as error:
            if isinstance(error, _Bus):
                breaker.failed()
            LOG.warning("The swap disk that %s may have on %s was not ended: %s", consumer_uuid, host, error)
            return False
        breaker.succeeded()
        return True

    def _attach(self, host: str, consumer_uuid: str, mib: int, project_id: str, user_id: str, patient: bool) -> str:
        view = self._agents().while_it_raises(  # what it had before may be on its way back
            Conflict,
            lambda: self._agents().insist(
                host,
                lambda api: api.attach_swap(
                    host, consumer_uuid=consumer_uuid, mib=mib, project_id=project_id, user_id=user_id
                ),
                patient,
            ),
        )
        return str(view["socket"])

    def _failed(self, error: Any, host: str, consumer_uuid: str, mib: int, patient: bool) -> PoolMemoryUnavailable:
        where = f"host {host}, consumer {consumer_uuid}, a swap disk of {mib} MiB"
        return unavailable(error, where, self._agents().waited(error, patient), SwapUnavailable)
