"""What the agent's RPC endpoints of lent memory share."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import oslo_messaging

from pondstack.domain.errors import HostUnusable, PondError
from pondstack_agent.rpc_errors import to_domain

T = TypeVar("T")


def expected(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let our errors cross RPC as answers, those of the transport as what they are of pondstack.domain.errors."""

    @wraps(method)
    def answering(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except PondError as error:
            raise to_domain(error) from error

    wrapped: Callable[..., Any] = oslo_messaging.expected_exceptions(PondError)(answering)
    return wrapped


def need(side: T | None) -> T:
    """Return a side of lent memory; raises HostUnusable when the host takes no part."""
    if side is None:
        raise HostUnusable("this host neither lends nor borrows memory; set [lending] transport in its agent's file")
    return side
