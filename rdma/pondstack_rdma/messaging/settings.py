"""What the options of [rpc] say, as values."""

from dataclasses import dataclass, replace
from typing import Any, Self

from pondstack_rdma.base import Transport
from pondstack_rdma.rpc.layout import Layout
from pondstack_rdma.rpc.pace import SERVER
from pondstack_rdma.rpc.server import ServerTerms
from pondstack_rdma.transports import load_transport, options_of


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one process, as client and as server. Times are in seconds."""

    transport: Transport
    layout: Layout
    terms: ServerTerms
    access_seconds: float
    retry_seconds: float

    @classmethod
    def from_conf(cls, conf: Any) -> Self:
        """Build them; an unknown transport, or one that does not take its options, stops its process at the start."""
        group = conf.rpc
        return cls(
            load_transport(group.transport, options_of(group), "rpc"),
            Layout(group.slots, group.slot_kib * 1024, group.max_message_mib * 2**20),
            ServerTerms(
                pace=replace(SERVER, longest_seconds=group.longest_pause_milliseconds / 1000),
                max_clients=group.max_clients,
            ),
            group.access_timeout_seconds,
            group.retry_seconds,
        )
