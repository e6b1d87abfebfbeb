"""Errors of other packages and of other processes, as those of pondstack.domain.errors."""

from collections.abc import Callable

from pondstack.domain import errors


def to_domain(error: errors.PondError) -> errors.PondError:
    """Return an error as the nearest class of pondstack.domain.errors, so that it can cross RPC (once more)."""
    kind: Callable[[str], errors.PondError] = next(
        item for item in type(error).__mro__ if item.__module__ == errors.__name__
    )
    return kind(error.message)
