"""Errors of an endpoint, as those of pondstack.domain.errors, which cross RPC."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import oslo_messaging

from pondstack.domain import errors
from pondstack.domain.conform import checked

T = TypeVar("T")


def answered(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have our own errors cross RPC as answers of an endpoint's method, without a traceback in the agent's log.

    Arguments of other types than it declares are refused: BadRequest.
    """

    checking = checked(method)

    @wraps(method)
    def translating(*arguments: Any, **named: Any) -> Any:
        try:
            return checking(*arguments, **named)
        except errors.PondError as error:
            raise errors.to_domain(error) from error

    wrapped: Callable[..., Any] = wraps(method)(oslo_messaging.expected_exceptions(errors.PondError)(translating))
    return wrapped


def need(side: T | None) -> T:
    """Return a side of lent memory; raises HostUnusable when the host takes no part."""
    if side is None:
        raise errors.HostUnusable(
            "this host neither lends nor borrows memory; set [lending] transport in its agent's file"
        )
    return side
