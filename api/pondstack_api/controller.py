"""The controller as the API sees it: an answer, an error, or Unavailable in bounded time, whatever the broker does."""

from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from pondstack.domain.errors import Unavailable
from pondstack.rpc import transport
from pondstack.rpc.bounded import BoundedCalls, CallOverdue, TooManyCalls, through
from pondstack.rpc.controller_api import AUDIT_SECONDS, ControllerAPI
from pondstack.rpc.identity.identity import Role

HANGING_CALLS_MAX = 32

SILENT = (
    "the controller did not answer in time. The change may still take effect: read the object again before you repeat "
    "the request; if this lasts, look at /healthcheck and at the log of pondstack-controller"
)


def controller_of(conf: cfg.ConfigOpts) -> ControllerAPI:
    """Return a client by the configuration's transport_url; it connects at the first call."""
    timeout = conf.api.controller_timeout_seconds
    # The deadline of the thread is the later one: normally oslo.messaging times out, and cleans up.
    return bounded(ControllerAPI(transport.get_transport(conf, Role.API), timeout), timeout + 1.0, AUDIT_SECONDS + 1.0)


def bounded(controller: ControllerAPI, timeout_seconds: float, audit_seconds: float = AUDIT_SECONDS) -> ControllerAPI:
    """Return the client, each of whose calls ends in time; it raises Unavailable when there is no answer then.

    HANGING_CALLS_MAX calls may hang on; after that calls are refused at once, with Unavailable, and not sent.
    """
    calls = BoundedCalls(HANGING_CALLS_MAX, "controller-call")

    def run(name: str, call: Callable[[], Any]) -> Any:
        try:
            return calls.call(audit_seconds if name == "audit" else timeout_seconds, call)
        except (CallOverdue, TimeoutError):
            raise Unavailable(SILENT) from None
        except TooManyCalls:
            raise Unavailable(
                f"{HANGING_CALLS_MAX} calls of the controller hang already, this one was not sent; look at /healthcheck"
            ) from None

    return through(controller, run)
