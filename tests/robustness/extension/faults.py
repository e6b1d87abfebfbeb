"""What befalls the host of a guest with remote memory, its lenders and the controllers, in mid-work.

What was killed is started again after the time that its service unit waits (etc/deploy). A lender's process has no
unit: its host is told to lend again.
"""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from pondstack.ha.lease import Terms
from pondstack_rack.daemon import Daemon, signal_process
from tests.robustness.extension.rack import BORROWER, LENDERS, ExtendedRack
from tests.robustness.rack import alive, family, pause, resume

PLANE_RESTART_SECONDS = 1.0
AGENT_RESTART_SECONDS = 2.0
CONTROLLER_RESTART_SECONDS = 2.0
"""RestartSec of their units."""

PLANE_FROZEN_SECONDS = (0.2, 3.0)
AGENT_FROZEN_SECONDS = (0.5, 6.0)
LENDER_FROZEN_SECONDS = (0.5, 6.0)
LEASES_FROZEN = (1.1, 3.0)
"""How long a leader is frozen, in leases."""

Strike = Callable[[ExtendedRack, random.Random], None]


def kill_plane(rack: ExtendedRack, _rng: random.Random) -> None:
    """SIGKILL the data plane: the guest waits for the next one, which has no link to any lender."""
    rack.plane.kill()
    _wait(PLANE_RESTART_SECONDS)
    rack.start_plane()


def freeze_plane(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGSTOP the data plane for a while."""
    assert rack.plane.process
    with _frozen(psutil.Process(rack.plane.process.pid)):
        _wait(rng.uniform(*PLANE_FROZEN_SECONDS))


def kill_lender(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGKILL a lender's process, and with it what it lends."""
    os.kill(rack.lender_pid(rng.choice(LENDERS)), signal.SIGKILL)


def freeze_lender(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGSTOP a lender's process for a while: its memory serves on."""
    with _frozen(psutil.Process(rack.lender_pid(rng.choice(LENDERS)))):
        _wait(rng.uniform(*LENDER_FROZEN_SECONDS))


def kill_agent(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGKILL the agent of the guest's host, or of a lender's."""
    name = _any_agent(rng)
    rack.rack.agents[name].kill()
    _wait(AGENT_RESTART_SECONDS)
    rack.rack.relaunch(name)


def freeze_agent(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGSTOP the agent of the guest's host, or of a lender's, for a while."""
    with _frozen(alive(rack.rack.agents[_any_agent(rng)])):
        _wait(rng.uniform(*AGENT_FROZEN_SECONDS))


def kill_agent_and_plane(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGKILL all of the guest's host that is ours, in either order; the data plane is back first."""
    agent = rack.rack.agents[BORROWER]
    kills = [agent.kill, rack.plane.kill]
    for kill in rng.sample(kills, len(kills)):
        kill()
    _wait(PLANE_RESTART_SECONDS)
    rack.start_plane()
    _wait(AGENT_RESTART_SECONDS - PLANE_RESTART_SECONDS)
    rack.rack.relaunch(BORROWER)


def kill_leader(rack: ExtendedRack, _rng: random.Random) -> None:
    """SIGKILL the leading controller; the other one takes over, and it comes back as the stand-by."""
    name = rack.rack.leader()
    controller = rack.rack.controllers[name]
    _kill(controller)
    _wait(CONTROLLER_RESTART_SECONDS)
    rack.rack.relaunch(name)


def freeze_leader(rack: ExtendedRack, rng: random.Random) -> None:
    """SIGSTOP the leading controller for longer than its lease; the other one takes over."""
    with _frozen(alive(rack.rack.controllers[rack.rack.leader()])):
        _wait(Terms().lease_seconds * rng.uniform(*LEASES_FROZEN))


KINDS: dict[str, Strike] = {
    "data plane killed": kill_plane,
    "data plane frozen": freeze_plane,
    "lender killed": kill_lender,
    "lender frozen": freeze_lender,
    "agent killed": kill_agent,
    "agent frozen": freeze_agent,
    "agent and data plane killed together": kill_agent_and_plane,
    "leading controller killed": kill_leader,
    "leading controller frozen": freeze_leader,
}
"""By the name that the report has."""


def _any_agent(rng: random.Random) -> str:
    """Return whose agent it is: every second time the guest's host's."""
    return rng.choice((BORROWER, BORROWER, *LENDERS))


def _kill(controller: Daemon) -> None:
    for member in family(alive(controller)):
        signal_process(member, signal.SIGKILL)
    controller.kill()


@contextmanager
def _frozen(process: psutil.Process) -> Iterator[None]:
    pause(process)
    try:
        yield
    finally:
        resume(process)


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)
