"""The options of the transport of lent memory, as the configuration has them."""

from typing import Any


def options_of(conf: Any) -> dict[str, str]:
    """Return the options of the configured transport."""
    own = {"shm": {"folder": conf.lending.shm_folder}, "tcp": {"host": conf.lending.tcp_address}}
    return {**own.get(conf.lending.transport, {}), **conf.lending.transport_options}
