"""The virt driver asks its host's agent what the host lends, in each of its rounds and at each claim of Nova's."""

import time
from collections.abc import Callable

import oslo_messaging
from oslo_log import log as logging

from pondstack.domain.admission import LentReport
from pondstack.domain.errors import HostUnusable, PondError
from pondstack.rpc.agent_api import AgentAPI
from pondstack_nova.breaker import Breaker
from pondstack_nova.compute import agent_client
from pondstack_nova.compute.lent_inventory import Unknown

LOG = logging.getLogger(__name__)

ASK_SECONDS = 3
"""How long Nova's claims on a host may wait for its agent, which is on that very host."""
AGAIN_SECONDS = 30.0
"""An agent that was silent again and again is asked again after this long."""


class LentMemoryReader:
    """Asks a host's agent what the host lends. Thread-safe."""

    def __init__(
        self, api: Callable[[], AgentAPI] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make_api = api or (lambda: agent_client.make_api(ASK_SECONDS))
        self._api: AgentAPI | None = None
        self._breaker = Breaker(clock, lambda: AGAIN_SECONDS)

    def read(self, host: str) -> LentReport | Unknown:
        """Return what a host lends, or why that is not known."""
        if not self._breaker.admit():
            return Unknown.SILENT
        if self._api is None:
            self._api = self._make_api()
        try:
            lent: LentReport | Unknown = self._api.get_lent(host)
        except HostUnusable as error:
            lent = _no_part(host, error)
        except PondError as error:
            LOG.debug("pondstack-agent on %s cannot say what the host lends: %s", host, error.message)
            lent = Unknown.SILENT
        except oslo_messaging.RemoteError as error:
            lent = _no_part(host, error)
        except oslo_messaging.MessagingException as error:
            LOG.warning("pondstack-agent on %s does not say what the host lends: start it (%s)", host, error)
            self._breaker.failed()
            return Unknown.SILENT
        self._breaker.succeeded()
        return lent


def _no_part(host: str, error: Exception) -> Unknown:
    LOG.debug("The host %s takes no part in lending, or its agent is of a former release: %s", host, error)
    return Unknown.NO_PART
