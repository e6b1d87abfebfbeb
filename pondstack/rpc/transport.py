"""oslo.messaging set-up that all components share.

The caller has initialised oslo.service's threading backend (or runs inside Nova, which has done it).
"""

import datetime
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import oslo_messaging
from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts as oslo_messaging_opts
from oslo_utils import importutils, strutils

from pondstack.conf import identity as identity_conf
from pondstack.domain.errors import BadRequest
from pondstack.rpc.identity.border import Border
from pondstack.rpc.identity.client import SignedClient
from pondstack.rpc.identity.credential import AUTHORITY, Authority, find
from pondstack.rpc.identity.freshness import Freshness
from pondstack.rpc.identity.identity import Identity, Role
from pondstack.rpc.identity.introducer import SignedIntroducer
from pondstack.rpc.identity.revocations import Revocations
from pondstack.rpc.identity.server import SignedDispatcher

LOG = log.getLogger(__name__)

RABBIT = "oslo_messaging_rabbit"
SHARED = Path("/dev/shm")
"""Where oslo.messaging counts queues that have names, for all processes of a service."""
OVER_RDMA = "pond+"
"""Before the scheme of the broker's URL: the driver of pondstack_rdma.messaging, which goes on over that broker."""
WITHIN_PROCESS = frozenset({"fake", "kombu+memory"})
"""Schemes of buses that nobody else can reach."""
REMOTE_ERRORS = ["pondstack.domain.errors"]


class Bus:
    """The way to the other services: an RPC transport of oslo.messaging, and the border that messages pass.

    `border` None: what crosses is not signed, as in a bus within one process.
    """

    def __init__(self, transport: Any, border: Border | None = None) -> None:
        self.transport = transport
        self.border = border
        driver: Any = getattr(transport, "_driver", None)
        if border is not None and hasattr(driver, "introducer"):  # that of calls over RDMA
            driver.introducer = SignedIntroducer(border)

    def client(self, target: Any) -> Any:
        """Return an RPC client."""
        made = oslo_messaging.get_rpc_client(self.transport, target)
        return made if self.border is None else SignedClient(made, self.border)

    def server(self, target: Any, endpoints: Sequence[Any]) -> Any:
        """Return an RPC server with native threads."""
        made = oslo_messaging.get_rpc_server(self.transport, target, endpoints, executor="threading")
        if self.border is not None:
            made.dispatcher = SignedDispatcher(made.dispatcher, self.border, target)
        return made

    def revoked(self) -> Mapping[str, float]:
        """Return since when whose credentials are not believed; see Revocations."""
        return {} if self.border is None else self.border.revocations.moments

    def cleanup(self) -> None:
        """Close all connections."""
        self.transport.cleanup()


def get_transport(
    conf: cfg.ConfigOpts, own: Identity | Role, url: str | None = None, *, revocations: Revocations | None = None
) -> Bus:
    """Return the bus of a service, which lets pondstack's errors through; `url` overrides transport_url.

    Where [rpc] transport is set (controllers and agents), calls go over RDMA to servers that have it, too. Raises
    BadRequest unless [pondstack_identity] has a credential of `own`; of a role where the name is of no importance.

    Quorum queues, which outlive a broker restart, are options of the file: [oslo_messaging_rabbit]
    rabbit_quorum_queue and rabbit_transient_quorum_queue. `revocations`: what all buses of a process know of them.
    """
    return Bus(get_oslo_transport(conf, url), border_of(conf, own, url, revocations))


def border_of(
    conf: cfg.ConfigOpts, own: Identity | Role, url: str | None = None, revocations: Revocations | None = None
) -> Border | None:
    """Return the border of a service, None on a bus within its process; raises BadRequest as get_transport()."""
    parsed = oslo_messaging.TransportURL.parse(conf, url)
    return None if parsed.transport in WITHIN_PROCESS else _make_border(conf, own, revocations)


def _make_border(conf: cfg.ConfigOpts, own: Identity | Role, revocations: Revocations | None) -> Border:
    identity_conf.register_opts(conf)
    group = conf[identity_conf.GROUP]
    folder = Path(group.folder)
    border = Border(
        find(folder, own),
        Authority.load(folder / AUTHORITY),
        Freshness(group.window_seconds),
        permissive=_until(group.permissive_until),
        revocations=revocations,
    )
    if border.permissive:
        LOG.warning(
            "[%s] permissive_until = %s: messages that nobody signed are let in until then",
            identity_conf.GROUP,
            group.permissive_until,
        )
    return border


def _until(day: str) -> Callable[[], bool]:
    """Return a test of whether a day is not over, in UTC; raises BadRequest."""
    if not day:
        return lambda: False
    try:
        last = datetime.date.fromisoformat(day)
    except ValueError as error:
        raise BadRequest(f"[{identity_conf.GROUP}] permissive_until = {day}: {error}") from None
    return lambda: datetime.datetime.now(datetime.UTC).date() <= last


def get_oslo_transport(conf: cfg.ConfigOpts, url: str | None = None) -> Any:
    """Return the RPC transport of oslo.messaging alone."""
    _register_own(conf)
    parsed = oslo_messaging.TransportURL.parse(conf, url)
    if "rpc" in conf and conf.rpc.transport and not parsed.transport.startswith(OVER_RDMA):
        url = OVER_RDMA + str(parsed)
    transport = oslo_messaging.get_rpc_transport(conf, url=url, allowed_remote_exmods=REMOTE_ERRORS)
    if _names_queues(conf, parsed):
        _lock_queue_names(SHARED / f"pondstack-locks-{os.geteuid()}")
    return transport


def _names_queues(conf: cfg.ConfigOpts, url: Any) -> bool:
    """Return whether queues of replies get names of this service (use_queue_manager), by the URL or by the file."""
    of_file = RABBIT in conf and conf[RABBIT].use_queue_manager
    return strutils.bool_from_string(url.query.get("use_queue_manager", of_file))


def _lock_queue_names(folder: Path) -> None:
    """Give oslo.messaging's queue manager a folder for its lock, unless the service has one; raises BadRequest.

    It is the same for all processes of a user, who count queues together, and nobody else writes there.
    """
    if lockutils.get_lock_path(cfg.CONF):
        return
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise BadRequest(f"{folder} is not a folder of ours alone; look whose it is, and remove it")
    # Not lockutils.set_defaults: it leaves what get_lock_path has found in the cache of options.
    cfg.CONF.set_default("lock_path", str(folder), group="oslo_concurrency")


def get_controller_transport(conf: cfg.ConfigOpts) -> Bus:
    """Return a controller's transport: unless the file says otherwise it takes one request at a time from the broker.

    What the broker has pushed to a process that is killed or paused waits there until its client calls again.
    """
    groups = dict(oslo_messaging_opts.list_opts())
    conf.register_opts(groups[RABBIT], group=RABBIT)
    conf.set_default("rabbit_qos_prefetch_count", 1, group=RABBIT)
    return get_transport(conf, Identity(Role.CONTROLLER, conf.controller.name))


def _register_own(conf: cfg.ConfigOpts) -> None:
    """Register what oslo.messaging 18.3 reads from `conf` at each call, but registers with the global cfg.CONF only."""
    for name in ("metrics", "tracing"):
        module = importutils.try_import(f"oslo_messaging._{name}.client")
        group = f"oslo_messaging_{name}"
        if module is not None:
            conf.register_opts(getattr(module, group), group=group)
