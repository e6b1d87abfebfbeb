"""The virt driver asks the agent of its own host, in each of its rounds: one that is silent, not in each of them."""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import oslo_messaging
from oslo_log import log as logging

from pondstack.domain.errors import HostUnusable, PondError
from pondstack.rpc.agent_api import AgentAPI
from pondstack_nova.breaker import Breaker
from pondstack_nova.compute import agent_client

LOG = logging.getLogger(__name__)
T = TypeVar("T")

ASK_SECONDS = 3
"""How long Nova's claims on a host may wait for its agent, which is on that very host."""
AGAIN_SECONDS = 30.0
"""An agent that was silent again and again is asked again after this long."""


class OwnAgent(Generic[T]):
    """Asks a host's agent one thing, a T. Thread-safe. `what`: for the log, what the agent is to say."""

    def __init__(
        self, what: str, api: Callable[[], AgentAPI] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._make_api = api or (lambda: agent_client.make_api(ASK_SECONDS))
        self._api: AgentAPI | None = None
        self._breaker = Breaker(clock, lambda: AGAIN_SECONDS)

    def ask(self, call: Callable[[AgentAPI], T], host: str, *, absent: T, silent: T) -> T:
        """Return the answer; `absent` where the host takes no part or its agent is older, `silent`: nobody says."""
        if not self._breaker.admit():
            return silent
        if self._api is None:
            self._api = self._make_api()
        try:
            found = call(self._api)
        except (HostUnusable, oslo_messaging.RemoteError, oslo_messaging.UnsupportedVersion) as error:
            LOG.debug("The agent of host %s takes no part, or is of a former release: %s: %s", host, self._what, error)
            found = absent
        except PondError as error:
            LOG.debug("pondstack-agent on %s cannot say %s: %s", host, self._what, error.message)
            found = silent
        except oslo_messaging.MessagingException as error:
            LOG.warning("pondstack-agent on %s does not say %s: start it (%s)", host, self._what, error)
            self._breaker.failed()
            return silent
        self._breaker.succeeded()
        return found
