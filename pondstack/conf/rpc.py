"""Options of RPC over RDMA between controllers and agents. Off by default: `transport` is empty."""

from typing import Any

from oslo_config import cfg

GROUP = "rpc"

OPTIONS = [
    cfg.StrOpt(
        "transport",
        default="",
        help=(
            "How calls between controllers and agents cross beside the message broker: an entry point of the group "
            "pondstack.transports, the same in all of a rack, such as verbs (hosts with RDMA devices), shm (hosts of "
            "one machine) or tcp (debugging only). Requests and replies are encrypted and authenticated; who is on the "
            "RDMA network can still disturb them, so close it to all but the hosts. Empty: all calls go over the "
            "broker, which is needed in any case."
        ),
    ),
    cfg.StrOpt(
        "shm_folder",
        default="/run/pondstack/rpc",
        help="Folder of the servers' sockets of the transport shm, the same for all hosts of the machine.",
    ),
    cfg.StrOpt(
        "tcp_address",
        default="127.0.0.1",
        help="Address of this host on which servers of the transport tcp listen.",
    ),
    cfg.DictOpt(
        "transport_options",
        default={},
        help=(
            "Further options of the transport as name:value, as its own page of the documentation has them. That of "
            "verbs is host, such as host:192.0.2.7: the address of this host, on its RDMA device, on which servers "
            "listen. Without it they listen on the first IPv4 address of an RDMA device."
        ),
    ),
    cfg.FloatOpt(
        "longest_pause_milliseconds",
        default=5.0,
        min=0.1,
        max=100.0,
        help=(
            "Longest pause in milliseconds between two looks of a server for requests. A call after a silence waits "
            "for up to this long, for half of it on average; the server, while nobody calls, uses less than 1 percent "
            "of a core with 5 milliseconds, twice as much with half of it. Calls that follow each other do not wait."
        ),
    ),
    cfg.IntOpt(
        "max_clients",
        default=64,
        min=1,
        max=512,
        help=(
            "Number of clients of one server that may have a region at once, in count. With more of them, the one that "
            "has been silent longest goes on over the broker. Those of shm and tcp have at most 64."
        ),
    ),
    cfg.IntOpt(
        "slots",
        default=8,
        min=1,
        max=64,
        help="Number of calls that one client has under way at one server, in count; more wait at the client.",
    ),
    cfg.IntOpt(
        "slot_kib",
        default=16,
        min=1,
        max=1024,
        help=(
            "Room for one request and for one reply of a slot, each so many KiB (1024 bytes). Longer ones cross in "
            "parts of this size. A server keeps 2 x slots x slot_kib for each client."
        ),
    ),
    cfg.IntOpt(
        "max_message_mib",
        default=16,
        min=1,
        max=64,
        help="Longest request or reply in MiB. A longer request goes over the broker; a longer reply is an error.",
    ),
    cfg.FloatOpt(
        "access_timeout_seconds",
        default=1.0,
        min=0.01,
        max=60.0,
        help="How long, in seconds, a client waits for one access of a server's memory, or for a connection.",
    ),
    cfg.FloatOpt(
        "retry_seconds",
        default=10.0,
        min=0.1,
        max=3600.0,
        help=(
            "Time in seconds between two attempts to call a server over RDMA that did not answer; meanwhile its calls "
            "go over the broker, and no call waits for an attempt."
        ),
    ),
]


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return the options by group, for the sample configuration."""
    return [(GROUP, OPTIONS)]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of RPC over RDMA."""
    conf.register_opts(OPTIONS, group=GROUP)
