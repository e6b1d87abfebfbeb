"""How long a call of an agent is repeated, by what its tries met; pondstack_nova.compute.agent_client tells why."""

from collections.abc import Callable

import nova.conf
import oslo_messaging
import tenacity
from oslo_log import log as logging

from pondstack.conf import compute as conf
from pondstack.domain.errors import DeviceFailed, SlicesReturning, Unavailable

CONF = nova.conf.CONF
conf.register_opts(CONF)
LOG = logging.getLogger(__name__)

SILENT_TRIES = 2
SHORTAGE_PAUSE_SECONDS = 1.0
"""Between two questions whether slices have come back."""

Bus = oslo_messaging.MessagingException


class RetryBudget:
    """How long one call is repeated."""

    def __init__(self, clock: Callable[[], float], patient_until: float = 0.0) -> None:
        """`patient_until`: until then, by the clock, silence does not end it."""
        self._clock = clock
        self._patient_until = patient_until
        self._silent = 0
        self._give_up_at = clock() + CONF.pondstack.attach_timeout_seconds
        self._enough_at: float | None = None
        self._backoff = tenacity.wait_random_exponential(multiplier=0.5, max=5)

    def over(self, state: tenacity.RetryCallState) -> bool:
        """Say after a failed try whether it was the last one."""
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, SlicesReturning):
            return self._clock() >= self._waited_enough_at(error)
        if isinstance(error, Bus):
            self._silent += 1
        if self._clock() < self._patient_until:
            return False
        return self._silent >= SILENT_TRIES or self._clock() >= self._give_up_at

    def pause(self, state: tenacity.RetryCallState) -> float:
        """Return the seconds to the next try; slices that come back are there at any moment."""
        error = state.outcome.exception() if state.outcome is not None else None
        return SHORTAGE_PAUSE_SECONDS if isinstance(error, SlicesReturning) else self._backoff(state)

    def _waited_enough_at(self, error: SlicesReturning) -> float:
        if self._enough_at is None:
            seconds = CONF.pondstack.shortage_wait_seconds
            self._enough_at = self._clock() + seconds
            LOG.info("Waiting up to %d s for pool memory: %s", seconds, error.message)
        return self._enough_at


def worth_another_try(error: BaseException) -> bool:
    """Return whether an agent may answer otherwise soon."""
    if isinstance(error, oslo_messaging.RemoteError):
        return False
    return isinstance(error, Bus | Unavailable) and not isinstance(error, DeviceFailed)
