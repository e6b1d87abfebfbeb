"""The transport of lent memory that the configuration names, by stevedore; used by the lender's process, too."""

from collections.abc import Mapping
from typing import Any

from stevedore.driver import DriverManager

from pondstack_rdma.base import Transport

ENTRY_POINTS = "pondstack.transports"


def load_transport(name: str, options: Mapping[str, Any]) -> Transport:
    """Build a transport; an unknown one, or one that does not take the options, stops its process at the start."""
    try:
        made: Transport = DriverManager(ENTRY_POINTS, name, on_load_failure_callback=_raise).driver(**options)
    except TypeError as error:
        raise ValueError(f"[lending] the transport {name} does not take the options {dict(options)}: {error}") from None
    return made


def options_of(conf: Any) -> dict[str, str]:
    """Return the options of the configured transport."""
    own = {"shm": {"folder": conf.lending.shm_folder}, "tcp": {"host": conf.lending.tcp_address}}
    return {**own.get(conf.lending.transport, {}), **conf.lending.transport_options}


def _raise(_manager: object, _entry_point: object, error: BaseException) -> None:
    raise error
