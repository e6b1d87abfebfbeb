"""`make bench-rpc`: calls over RDMA against calls over RabbitMQ, through the same oslo.messaging, in the same run.

Two server processes, one on the broker alone and one with RDMA beside it, and a client of each. Rounds alternate, so
that whatever else the machine does meets both; the ratio within each round is one sample. `calls` follow each other in
one thread; `parallel` ones come from several; a `lone` one comes after a silence, when the server looks rarely. Idle:
what the server with RDMA uses of a core while nobody calls, beyond what the other one uses in the same seconds.

All on this machine, with the driver's name on each line: shm and tcp are no RDMA device. `verbs` is measured between
two emulated hosts, over soft-RoCE: servers in one, clients in the other, for RabbitMQ as well. Its broker runs on this
machine, without emulation, which favours it. Under TCG only ratios mean anything; idle servers are not measured there.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from bench import rpc_buses  # noqa: E402 (threading first)
from bench.figures import Meter, percentile, spread  # noqa: E402
from bench.rpc_buses import Bus  # noqa: E402

RATIO = 1.0
"""Of time over RDMA to time over RabbitMQ, at most: otherwise nobody has a reason to switch it on."""
IDLE_PERCENT = 2.0
"""Of a core, at most, that a server's looks for requests may cost while nobody calls."""
ANSWERED = 0.95
"""Of our calls that go over RDMA, at least: an access that a busy machine makes too late sends some the other way."""
HERE = {"rounds": 11, "calls": 200, "lone": 10}
HOSTS = {"rounds": 7, "calls": 50, "lone": 5}


@dataclass
class Found:
    """Microseconds by kind, one list a round."""

    calls: list[list[float]] = field(default_factory=list)
    lone: list[list[float]] = field(default_factory=list)
    parallel: list[float] = field(default_factory=list)
    """Wall time per call, all threads together."""


def turn(bus: Bus, found: Found, given: argparse.Namespace) -> None:
    """Measure one round of a bus."""
    taken = bus.turn(given)
    found.calls.append(taken.calls)
    found.parallel.append(taken.per_call)
    found.lone.append(taken.lone)


def idle(ours: Bus, theirs: Bus, seconds: float) -> tuple[float, float]:
    """Return the percent of a core that either server uses while nobody calls."""
    before = [bus.cpu_seconds() for bus in (ours, theirs)]
    time.sleep(seconds)
    after = [bus.cpu_seconds() for bus in (ours, theirs)]
    used = [(end - begin) / seconds * 100 for begin, end in zip(before, after, strict=True)]
    return used[0], used[1]


def line(name: str, ours: Sequence[float], theirs: Sequence[float], goal: float | None) -> bool:
    """Print one kind, a value a round; whether it holds its target."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    held = goal is None or statistics.median(ratios) <= goal
    verdict = "no target" if goal is None else f"target <= {goal}: {'ok' if held else 'MISSED'}"
    print(
        f"{name:<26} us  ours {spread(ours, 0)}   RabbitMQ {spread(theirs, 0)}   ratio {spread(ratios, 2)}, {verdict}"
    )
    return held


def report(driver: str, ours: Found, theirs: Found, threads: int) -> bool:
    """Print the times; whether all of them hold."""
    mine, other = ([statistics.median(round_) for round_ in found.calls] for found in (ours, theirs))
    good = [line(f"{driver} calls, median", mine, other, RATIO)]
    mine, other = ([percentile(round_, 99) for round_ in found.calls] for found in (ours, theirs))
    good.append(line(f"{driver} calls, p99", mine, other, RATIO))
    good.append(line(f"{driver} {threads} threads, per call", ours.parallel, theirs.parallel, RATIO))
    rates = [1e6 / statistics.median(found.parallel) for found in (ours, theirs)]
    print(f"{driver} {threads} threads, calls/s      ours {rates[0]:.0f}   RabbitMQ {rates[1]:.0f}")
    mine, other = ([statistics.median(round_) for round_ in found.lone] for found in (ours, theirs))
    line(f"{driver} lone call, median", mine, other, None)
    return all(good)


def report_idle(driver: str, used: tuple[float, float]) -> bool:
    """Print what waiting costs; whether it holds."""
    more = used[0] - used[1]
    print(
        f"{driver} idle server, % of a core: with RDMA {used[0]:.2f}   broker alone {used[1]:.2f}   more {more:.2f}, "
        f"target <= {IDLE_PERCENT}: {'ok' if more <= IDLE_PERCENT else 'MISSED'}"
    )
    return more <= IDLE_PERCENT


def rounds(given: argparse.Namespace, rdma: Bus, rabbit: Bus) -> tuple[Found, Found]:
    """Measure all rounds, the first one for warmth only; raises RuntimeError when calls did not go over RDMA."""
    ours, theirs = Found(), Found()
    before = rdma.answered()
    with Meter("rounds", given.rounds) as meter:
        turn(rdma, Found(), given)
        turn(rabbit, Found(), given)
        for number in range(given.rounds):
            pairs = [(rdma, ours), (rabbit, theirs)]
            for bus, found in pairs if number % 2 else pairs[::-1]:
                turn(bus, found, given)
            meter.show(number + 1, "")
    made = (given.rounds + 1) * (2 * given.calls + given.lone)
    over = rdma.answered() - before
    print(f"{over} of {made} calls of ours went over {given.driver}")
    if over < made * ANSWERED:
        raise RuntimeError(f"too many calls went over the broker: nothing is said about {given.driver}")
    return ours, theirs


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; what is not given fits the place of the measurement."""
    parser = argparse.ArgumentParser(prog="make bench-rpc", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--driver", default="shm", help="entry point of pondstack.transports (DRIVER)")
    parser.add_argument("--option", action="append", default=[], help="name:value of that transport")
    parser.add_argument("--here", action="store_true", help="verbs, too, on this machine: over its own RDMA device")
    parser.add_argument("--rounds", type=int, help=f"turns of either (ROUNDS; {_default('rounds')})")
    parser.add_argument("--calls", type=int, help=f"in a turn ({_default('calls')})")
    parser.add_argument("--lone", type=int, help=f"lone calls in a turn ({_default('lone')})")
    parser.add_argument("--threads", type=int, default=8, help="of the parallel calls")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="that nobody calls")
    given = parser.parse_args(words)
    given.hosts = given.driver == "verbs" and not given.here
    for name, value in (HOSTS if given.hosts else HERE).items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def _default(name: str) -> str:
    return f"{HERE[name]}, in hosts {HOSTS[name]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 when the targets hold."""
    given = arguments_of(arguments)
    used: tuple[float, float] | None = None
    with (rpc_buses.in_hosts if given.hosts else rpc_buses.here)(given) as (rdma, rabbit):
        ours, theirs = rounds(given, rdma, rabbit)
        if not given.hosts:
            used = idle(rdma, rabbit, given.idle_seconds)
    place = "all on this machine"
    if given.hosts:
        place = "between two emulated hosts (TCG: only ratios mean anything), the broker outside of them, unemulated"
    print(f"{given.rounds} rounds of {given.calls} calls; median (least - most) of rounds; {place}")
    good = [report(given.driver, ours, theirs, given.threads), used is None or report_idle(given.driver, used)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
