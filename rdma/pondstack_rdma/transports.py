"""A transport as the configuration has it: its options, and its class by name, by stevedore."""

from collections.abc import Mapping
from typing import Any

from stevedore.driver import DriverManager

from pondstack_rdma.base import Transport

ENTRY_POINTS = "pondstack.transports"


def options_of(group: Any) -> dict[str, str]:
    """Return the options of the transport that a group of the configuration names: [lending], [rpc]."""
    own = {"shm": {"folder": group.shm_folder}, "tcp": {"host": group.tcp_address}}
    return {**own.get(group.transport, {}), **group.transport_options}


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
