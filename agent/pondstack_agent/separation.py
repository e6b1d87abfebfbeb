"""From root to a user: what needs root goes into processes of its own, and the agent gives up everything else of it.

The processes are forked at the very start, by the agent's first process, before it becomes [agent] user. So nothing
has to give privileges back later: no sudo, no set-user-id program, and the unit may have NoNewPrivileges.
"""

import os
import pwd
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from oslo_config import cfg
from oslo_log import log
from oslo_privsep import capabilities

from pondstack.conf.agent import SYNTHETIC
from pondstack.domain.errors import BadRequest, Unavailable
from pondstack_agent.drivers.cxl import privileged as cxl
from pondstack_agent.host import privileged as host
from pondstack_agent.mitigation import libvirt_domains
from pondstack_agent.mitigation import privileged as mitigation
from pondstack_agent.partition import privileged as partition
from pondstack_agent.privilege import abilities
from pondstack_agent.privilege.context import Context
from pondstack_agent.telemetry import privileged as telemetry
from pondstack_agent.tiering import privileged as tiering

LOG = log.getLogger(__name__)

CONTEXTS = (
    host.context,
    mitigation.context,
    libvirt_domains.context,
    tiering.context,
    cxl.context,
    partition.context,
    telemetry.context,
)
_TO_CHANGE_USER = frozenset({capabilities.CAP_SETUID, capabilities.CAP_SETGID})
_TICKET = b"1"


class Separation:
    """The privileged processes of one agent. They serve one worker: what it had asked for dies with it."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = tuple(contexts)
        self._tickets, last = os.pipe()
        os.write(last, _TICKET)
        os.close(last)

    def connect(self) -> None:
        """Have this process ask them; raises Unavailable, and ends the agent, in a second worker."""
        if os.read(self._tickets, len(_TICKET)) != _TICKET:
            LOG.critical("The agent's worker has ended: the agent ends, too, to be started again")
            os.kill(os.getppid(), signal.SIGTERM)
            raise Unavailable("the agent's worker has ended; the agent is started again")
        for context in self.contexts:
            context.connect()


def needed(conf: cfg.ConfigOpts) -> list[Context]:
    """Return the contexts of what an agent is configured to do."""
    idle: set[Context] = set()
    if "cxl" not in conf.agent.drivers:
        idle |= {cxl.context, partition.context}
    if not conf.telemetry.enabled or conf.telemetry.guests == SYNTHETIC:
        idle.add(telemetry.context)
    return [context for context in CONTEXTS if context not in idle]


def separate(conf: cfg.ConfigOpts) -> Separation | None:
    """Fork what needs root and become [agent] user; None where this process stays who it is, which is logged.

    Call it before the first thread. Raises BadRequest when the user cannot have the agent's folders.
    """
    if os.geteuid() != 0:
        LOG.warning("Not root: without a helper_command the agent sees no guests that run as another user")
        return None
    user = _user(conf)
    if user is None:
        return None
    if threading.active_count() > 1:
        raise RuntimeError("a thread would keep root's capabilities")
    for folder in _folders(conf):
        give(folder, user)
    libvirt_domains.allow(conf.agent.libvirt_uri)
    contexts = needed(conf)
    for number, context in enumerate(contexts):
        context.fork(contexts[:number])
    become(user)
    for folder in _folders(conf):
        if not os.access(folder, os.W_OK | os.X_OK):
            raise BadRequest(f"the user {user.pw_name} does not get into {folder}; open the folders above it to others")
    LOG.info("Runs as %s, with the processes %s", user.pw_name, ", ".join(context.name for context in contexts))
    return Separation(contexts)


def give(folder: Path, user: pwd.struct_passwd) -> None:
    """Make a folder a user's own; raises BadRequest when it is there and somebody else's, or cannot be made."""
    try:
        if not folder.exists():
            _make(folder, user)
        owner = folder.stat().st_uid
    except OSError as error:
        raise BadRequest(
            f"cannot make {folder} for the user {user.pw_name} ({error.strerror}): "
            f"`install -d -o {user.pw_name} -m 700 {folder}`"
        ) from error
    if owner != user.pw_uid:
        raise BadRequest(
            f"{folder} is not the user {user.pw_name}'s ([agent] user): stop the agent and its helpers, then "
            f"`chown -R {user.pw_name}: {folder}`"
        )


def become(user: pwd.struct_passwd) -> None:
    """Become a user for good, without any capability; raises OSError."""
    abilities.keep(_TO_CHANGE_USER, ())
    os.initgroups(user.pw_name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    capabilities.drop_all_caps_except([], [], [])
    os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)


def _make(folder: Path, user: pwd.struct_passwd) -> None:
    for parent in reversed([parent for parent in folder.parents if not parent.exists()]):
        parent.mkdir(mode=0o755)
        parent.chmod(0o755)
    folder.mkdir(mode=0o700)
    os.chown(folder, user.pw_uid, user.pw_gid)


def _user(conf: cfg.ConfigOpts) -> pwd.struct_passwd | None:
    name = conf.agent.user
    try:
        user = pwd.getpwnam(name) if name else None
    except KeyError:
        LOG.warning("The agent stays root: this host has no user %s ([agent] user)", name)
        return None
    if user is None or user.pw_uid == 0:
        LOG.warning("The agent stays root: so says [agent] user")
        return None
    return user


def _folders(conf: cfg.ConfigOpts) -> list[Path]:
    found = [Path(conf.agent.state_dir)]
    for group in (conf.lending, conf.rpc):
        if group.transport == "shm":
            found.append(Path(group.shm_folder))
    return found
