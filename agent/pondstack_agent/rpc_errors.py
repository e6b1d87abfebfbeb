"""Errors of other packages and of other processes, as those of pondstack.domain.errors, which cross RPC."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import oslo_messaging

from pondstack.domain import errors
from pondstack.domain.conform import checked

T = TypeVar("T")


def to_domain(error: errors.PondError) -> errors.PondError:
    """Return an error as the nearest class of pondstack.domain.errors, so that it can cross RPC (once more)."""
    kind: Callable[[str], errors.PondError] = next(
        item for item in type(error).__mro__ if item.__module__ == errors.__name__
    )
    return kind(error.message)


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
            raise to_domain(error) from error

    wrapped: Callable[..., Any] = wraps(method)(oslo_messaging.expected_exceptions(errors.PondError)(translating))
    return wrapped


def need(side: T | None) -> T:
    """Return a side of lent memory; raises HostUnusable when the host takes no part."""
    if side is None:
        raise errors.HostUnusable(
            "this host neither lends nor borrows memory; set [lending] transport in its agent's file"
        )
    return side
