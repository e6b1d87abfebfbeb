"""The wait of a guest, which has come to this host with its slices, until its former host has let go of them."""

import time
from collections.abc import Callable

import nova.conf
import oslo_messaging
import tenacity

from pondstack.domain.errors import PondError, Unavailable
from pondstack_nova.compute.agent_client import PoolAttachments, pause, unavailable

CONF = nova.conf.CONF

LOOK_SECONDS = 0.1
"""Between two looks at the device's table: the guest stands still meanwhile."""


def take_up(
    attachments: PoolAttachments,
    host: str,
    consumer_uuid: str,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = pause,
) -> None:
    """Return once a guest may run; raises PoolMemoryUnavailable after attach_timeout_seconds.

    Then its former host may have bytes of it in its CPU caches, and it must not run.
    """
    give_up_at = clock() + CONF.pondstack.attach_timeout_seconds
    retry = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda taken: not taken),
        stop=lambda _state: clock() >= give_up_at,
        wait=tenacity.wait_fixed(LOOK_SECONDS),
        sleep=sleep,
    )
    where = f"host {host}, consumer {consumer_uuid}, which stays paused"
    try:
        retry(lambda: attachments.insist(host, lambda api: api.take_up(host, consumer_uuid=consumer_uuid), False))
    except tenacity.RetryError:
        error = Unavailable(
            "the former host of the guest has not let go of its slices; look at pondstack-agent there, and once that "
            "host is fenced, hard reboot the server"
        )
        raise unavailable(error, where) from None
    except (PondError, oslo_messaging.MessagingException) as error:
        raise unavailable(error, where) from error
