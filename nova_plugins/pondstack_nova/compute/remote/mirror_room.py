"""The virt driver asks its host's agent how much room for mirrors the host has, in each of its rounds."""

import time
from collections.abc import Callable

import oslo_messaging
from oslo_log import log as logging

from pondstack.domain.errors import HostUnusable, PondError
from pondstack.rpc.agent_api import AgentAPI
from pondstack_nova.breaker import Breaker
from pondstack_nova.compute import agent_client
from pondstack_nova.compute.lent_memory import AGAIN_SECONDS, ASK_SECONDS

LOG = logging.getLogger(__name__)


class MirrorRoomReader:
    """Asks a host's agent. Thread-safe."""

    def __init__(
        self, api: Callable[[], AgentAPI] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make_api = api or (lambda: agent_client.make_api(ASK_SECONDS))
        self._api: AgentAPI | None = None
        self._breaker = Breaker(clock, lambda: AGAIN_SECONDS)

    def read(self, host: str) -> int | None:
        """Return the MiB of mirrors that a host has room for in all, 0 where it has no data plane; None: unknown."""
        if not self._breaker.admit():
            return None
        if self._api is None:
            self._api = self._make_api()
        try:
            room: int | None = int(self._api.get_mirror_room(host)["total_mib"])
        except (HostUnusable, oslo_messaging.RemoteError, oslo_messaging.UnsupportedVersion) as error:
            LOG.debug("The host %s has no data plane, or its agent is of a former release: %s", host, error)
            room = 0
        except PondError as error:
            LOG.debug("pondstack-agent on %s cannot say what room for mirrors there is: %s", host, error.message)
            room = None
        except oslo_messaging.MessagingException as error:
            LOG.debug("pondstack-agent on %s does not say what room for mirrors there is: %s", host, error)
            self._breaker.failed()
            return None
        self._breaker.succeeded()
        return room
