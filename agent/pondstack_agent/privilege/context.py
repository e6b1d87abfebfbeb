"""A context of oslo.privsep: some verbs, the capabilities that they need, and the process that has them.

An agent that stays root does it all itself. One that is to become another user forks the process of each context while
it is root, and asks it from then on. One that was started as another user starts it by `helper_command` instead.
"""

import contextlib
import os
import signal
import socket
import traceback
from collections.abc import Collection, Iterable
from typing import NoReturn

from oslo_config import cfg
from oslo_log import log
from oslo_privsep import comm, daemon, priv_context

from pondstack.domain.errors import Unavailable
from pondstack_agent.privilege import abilities

LOG = log.getLogger(__name__)

PREFIX = "pond-"
"""Of the name that the process of a context has for ps(1); the kernel keeps 15 bytes of it."""
_THREADS = 16
"""Verbs under way at once: some take minutes, and others must not wait for them."""
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Context(priv_context.PrivContext):
    """One context, `context` of its module. Its options are in the group [NAME_privsep] of the agent's file.

    `needed`: the capabilities that its verbs need of a process of root's.
    """

    def __init__(self, name: str, module: str, needed: Collection[int]) -> None:
        super().__init__(
            "pondstack_agent", cfg_section=f"{name}_privsep", pypath=f"{module}.context", capabilities=list(needed)
        )
        cfg.CONF.set_default("thread_pool_size", _THREADS, group=self.cfg_section)
        self.name = name
        self.needed = frozenset(int(number) for number in needed)
        self._link: socket.socket | None = None
        self._parent = 0
        if os.geteuid() == 0:
            self.set_client_mode(False)

    @property
    def elsewhere(self) -> bool:
        """Whether another process has what this one lacks."""
        return bool(self.client_mode and (self._link is not None or self.conf.helper_command))

    def fork(self, former: Iterable["Context"] = ()) -> int:
        """Start its process, and return its id; call it as root, before the first thread.

        `former`: the contexts that have one. Theirs are the agent's to ask, and this one lets go of them.
        """
        ours, theirs = socket.socketpair()
        self._parent = os.getpid()
        child = os.fork()
        if child == 0:
            self._serve(theirs, [ours, *(other._link for other in former if other._link is not None)])
        theirs.close()
        self._link = ours
        return child

    def connect(self) -> None:
        """Have this process ask it from now on; raises FailedToDropPrivileges when it has ended."""
        if self._link is None:
            raise ValueError(f"the context {self.name} has no process")
        # What its own forking does at once is done in two steps: between them the agent forks its worker.
        self.channel = _Channel(self._link, self)
        self.set_client_mode(True)

    def start(self, method: priv_context.Method = priv_context.Method.ROOTWRAP) -> None:
        """Start it by its helper_command. One that was forked cannot be started again, as nobody is root any more."""
        if self._link is None:
            super().start(method)
            return
        raise Unavailable(f"the agent's privileged process {self.name} has ended; the agent is started again")

    def ended(self) -> None:
        """End the agent, as its process has ended: both are started again."""
        LOG.critical("The privileged process %s has ended: the agent ends, too, to be started again", self.name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._parent, signal.SIGTERM)

    def _serve(self, link: socket.socket, others: Iterable[socket.socket]) -> NoReturn:
        """Do what is asked, until the agent has ended."""
        status = 1
        try:
            for other in others:
                other.close()
            # It ends after the agent, which may need it for its own end.
            for number in _IGNORED:
                signal.signal(number, signal.SIG_IGN)
            with open("/proc/self/comm", "w") as file:
                file.write(PREFIX + self.name)
            channel = comm.ServerChannel(link)
            daemon.replace_logging(daemon.PrivsepLogHandler(channel, processName=str(self)))
            # Of a unit that has fewer, those that are there: what needs another one says so.
            abilities.keep(self.conf.capabilities)
            cfg.CONF.set_override("capabilities", sorted(abilities.effective()), group=self.cfg_section)
            daemon.Daemon(channel, context=self).run()
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
            traceback.print_exc()
        finally:
            os._exit(status)


class _Channel(daemon._ClientChannel):
    """The way to the process of a context, which ends before this one only by mischance."""

    def __init__(self, link: socket.socket, context: Context) -> None:
        self._ended = context.ended
        super().__init__(link, context)

    def _reader_main(self, reader: comm.Deserializer) -> None:
        super()._reader_main(reader)
        self._ended()
