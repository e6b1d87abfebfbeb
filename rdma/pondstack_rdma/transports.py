"""A transport by its name in the configuration, by stevedore."""

from collections.abc import Mapping
from typing import Any

from stevedore.driver import DriverManager

from pondstack_rdma.base import Transport

ENTRY_POINTS = "pondstack.transports"


def load_transport(name: str, options: Mapping[str, Any], section: str = "lending") -> Transport:
    """Build a transport; `section` of the configuration names it.

    Raises ValueError for options that it does not take, NoMatches for an unknown one: its process ends at the start.
    """
    try:
        made: Transport = DriverManager(ENTRY_POINTS, name, on_load_failure_callback=_raise).driver(**options)
    except TypeError as error:
        raise ValueError(
            f"[{section}] the transport {name} does not take the options {dict(options)}: {error}"
        ) from None
    return made


def _raise(_manager: object, _entry_point: object, error: BaseException) -> None:
    raise error
