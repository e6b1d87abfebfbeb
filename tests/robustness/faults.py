"""The faults: each does something to the rack at a seeded moment and says what makes the rack whole again."""

import functools
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pondstack.domain.errors import Conflict
from pondstack.ha.lease import Terms
from pondstack_rack.daemon import DaemonFailed, signal_process
from pondstack_rack.wait import wait_until
from tests.robustness.caller import NO_ANSWER
from tests.robustness.rack import Rack, alive, family, pause, resume

LEASE_SECONDS = Terms().lease_seconds
"""The default of [ha] lease_seconds; a pause is longer."""

HAND_OVER_SECONDS = 30.0
FULL_SECONDS = (5.0, 12.0)
FILL_AGAIN_SECONDS = 0.05

Mend = Callable[[], None]
Now = Callable[[], None]
"""Called by a fault right before it strikes: time is counted from there."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault. `strike` does it and returns the mending; `host`: it concerns that one host's agent only."""

    name: str
    strike: Callable[[Rack, random.Random, Now], Mend]
    host: str = ""


def kill_leader(rack: Rack, _rng: random.Random, now: Now) -> Mend:
    """SIGKILL the leading controller; mended, it is the stand-by."""
    name = rack.leader()
    members = family(alive(rack.controllers[name]))
    now()
    for member in members:
        signal_process(member, signal.SIGKILL)
    rack.controllers[name].kill()
    return lambda: rack.relaunch(name)


def stop_leader(rack: Rack, _rng: random.Random, now: Now) -> Mend:
    """SIGTERM the leading controller, which ends in order in its own time."""
    name = rack.leader()
    process = alive(rack.controllers[name])
    now()
    signal_process(process, signal.SIGTERM)

    def mend() -> None:
        rack.controllers[name].stop()
        rack.relaunch(name)

    return mend


def pause_leader(rack: Rack, rng: random.Random, now: Now) -> Mend:
    """SIGSTOP the leading controller for longer than its lease, in the middle of whatever it does, then SIGCONT."""
    process = alive(rack.controllers[rack.leader()])
    now()
    until = time.monotonic() + LEASE_SECONDS * rng.uniform(1.1, 3.0)
    pause(process)

    def mend() -> None:
        threading.Event().wait(max(0.0, until - time.monotonic()))
        resume(process)

    return mend


def cut_leader(rack: Rack, rng: random.Random, now: Now) -> Mend:
    """Cut the leading controller off from everything but the device for longer than its lease."""
    network = rack.networks[rack.leader()]
    now()
    until = time.monotonic() + LEASE_SECONDS * rng.uniform(1.1, 3.0)
    network.cut()

    def mend() -> None:
        threading.Event().wait(max(0.0, until - time.monotonic()))
        network.heal()

    return mend


def fill_disk(rack: Rack, rng: random.Random, now: Now) -> Mend:
    """Leave no byte on the database's disk for some seconds; what counts is how writes resume once there is room."""
    disk = rack.disk
    assert disk is not None
    until = time.monotonic() + rng.uniform(*FULL_SECONDS)
    try:
        while time.monotonic() < until:
            disk.fill()
            threading.Event().wait(FILL_AGAIN_SECONDS)
    finally:
        disk.free()
    now()
    rack.store.start()
    return lambda: None


def cut_leader_from_broker(rack: Rack, _rng: random.Random, now: Now) -> Mend:
    """Cut the leading controller off from the broker alone, until writes are acknowledged: by another one, then."""
    name = rack.leader()
    now()
    rack.networks[name].cut_ports(rack.broker.ports)
    return rack.networks[name].heal


def hand_over(rack: Rack, _rng: random.Random, now: Now) -> Mend:
    """Ask the leader to hand over to the other one, again while there is no leader that agrees."""

    now()

    def asked() -> bool:
        leader = rack.leader()
        try:
            rack.client().failover(leader=leader, to=next(name for name in rack.controllers if name != leader))
        except (*NO_ANSWER, Conflict):
            return False
        return True

    if not wait_until(asked, HAND_OVER_SECONDS):
        raise DaemonFailed(f"nobody hands over within {HAND_OVER_SECONDS:.0f} s")
    return lambda: None


def kill_store(rack: Rack, rng: random.Random, now: Now) -> Mend:
    """SIGKILL a database server."""
    now()
    return rack.store.kill(rng)


def kill_leader_and_store(rack: Rack, rng: random.Random, now: Now) -> Mend:
    """SIGKILL the leading controller, and a database server with it."""
    mend_leader = kill_leader(rack, rng, now)
    mend_store = rack.store.kill(rng)

    def mend() -> None:
        mend_store()
        mend_leader()

    return mend


def strike_broker(rack: Rack, rng: random.Random, now: Now) -> Mend:
    """Take a node of RabbitMQ away."""
    now()
    return rack.broker.strike(rng)


@functools.cache
def kill_agent(host: str) -> Fault:
    """Return the fault: SIGKILL the agent of a host and start it again, as its service manager does."""

    def strike(rack: Rack, _rng: random.Random, now: Now) -> Mend:
        now()
        rack.agents[host].kill()
        rack.relaunch(host)
        return lambda: None

    return Fault("kill -9 agent, start it again", strike, host)


KILL_LEADER = Fault("kill -9 leader", kill_leader)
PAUSE_LEADER = Fault("SIGSTOP leader past its lease", pause_leader)
CUT_LEADER = Fault("network of the leader cut past its lease", cut_leader)
CUT_BROKER = Fault("leader cut off from RabbitMQ alone", cut_leader_from_broker)
STOP_LEADER = Fault("SIGTERM leader", stop_leader)
FILL_DISK = Fault("disk of the database full, until there is room", fill_disk)
HAND_OVER = Fault("hand over to the stand-by", hand_over)


def of_broker(casualty: str) -> Fault:
    """Return the fault of a message broker."""
    return Fault(casualty, strike_broker)


def of_store(casualty: str) -> tuple[Fault, Fault]:
    """Return the faults of a database: a server alone, and together with the leader."""
    return Fault(casualty, kill_store), Fault(f"kill -9 leader, and {casualty}", kill_leader_and_store)
