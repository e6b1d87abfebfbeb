"""`make bench-mitigation`: moving pool memory to local memory beside the raw command for as much, in one emulated host.

A turn moves the touched memory of one process from the pool's CPU-less node to node 0, once by `migratepages`, once by
cpuset.mems alone, once by the agent's mover. The agent's includes what the raw command does not do: looking for the
pages, reserving room, chunks between which it could be aborted (of the agent's default size), rewriting the policy,
reading back. The order of a turn rotates; the ratio within a turn is one sample. Under TCG only ratios mean anything.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from oslo_config import cfg

from bench.figures import Meter, spread
from pondstack.conf import agent
from pondstack.devices import pool_uuid
from pondstack.devices.emulated import create_device
from pondstack.domain.model import Extent
from pondstack.rpc.wire import Grant
from tests.hardware import code_disk
from tests.hardware.host import EmulatedHost
from tests.hardware.machine import Machine
from tests.hardware.qemu import Files

TARGET = 1.1
SLICES, SLICE_MIB, MEMORY_MIB = 4, 128, 384
HOST, SERIAL, TABLE = "host1", "bench", "/mnt/device"
WAYS = ("raw", "cgroup", "agent")
NAMES = {"raw": "migratepages", "cgroup": "cpuset.mems alone", "agent": "agent"}


def main() -> int:
    """Measure and print; 0 when the target holds."""
    parser = argparse.ArgumentParser(prog="make bench-mitigation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="turns (default 15)")
    rounds, chunk_mib = parser.parse_args().rounds, default_chunk_mib()
    files = Files.built()
    with tempfile.TemporaryDirectory(prefix="bench-mitigation-", dir="/tmp") as folder:
        pool = Path(folder, "pool")
        device = create_device(pool, SLICES, slice_mib=SLICE_MIB, serial=SERIAL)
        machine = Machine(HOST, (pool / "memory",), shares={TABLE: pool}, cpus=1)
        with EmulatedHost(machine, files, code_disk.build(files, Path(folder))) as host:
            times = host.remote(
                "tests.hardware.guest.mitigation_times:Times",
                host=HOST,
                serial=SERIAL,
                table=TABLE,
                chunk_mib=chunk_mib,
            )
            extents = (Extent(0, SLICES),)
            device.grant(HOST, extents, tag="bench", epoch=1)
            grant = Grant("bench", "measured", HOST, pool_uuid(SERIAL), "pool0", {}, SLICE_MIB, extents, 1)
            node = times.attach(grant).backings[0].host_node
            turns: list[dict[str, dict[str, float]]] = []
            with Meter("turns", rounds) as meter:
                for number in range(rounds + 1):
                    order = [WAYS[(number + n) % len(WAYS)] for n in range(len(WAYS))]
                    turn = {way: times.measure(way, node, MEMORY_MIB, chunk_mib) for way in order}
                    if number:  # the first one warms up
                        turns.append(turn)
                    meter.show(number, ", ".join(f"{NAMES[way]} {sum(turn[way].values()):.2f} s" for way in WAYS))
    return report(turns)


def default_chunk_mib() -> int:
    """Return what the agent moves at once unless told otherwise."""
    conf = cfg.ConfigOpts()
    agent.register_opts(conf)
    conf([], default_config_files=[])
    return int(conf.agent.mitigation_chunk_mib)


def report(turns: list[dict[str, dict[str, float]]]) -> int:
    """Print seconds per GiB, the agent's phases, and the ratio of each turn; 0 when the median holds the target.

    `turns`: of each, way to phase to seconds.
    """
    gib = MEMORY_MIB / 1024
    seconds = {way: [sum(turn[way].values()) for turn in turns] for way in WAYS}
    for way in WAYS:
        print(f"{NAMES[way]:<18} s/GiB   {spread([took / gib for took in seconds[way]], 2)}")
    for phase in turns[0]["agent"]:
        shares = [turn["agent"][phase] / took for turn, took in zip(turns, seconds["raw"], strict=True)]
        print(f"  of it {phase:<10} / migratepages: {spread(shares, 3)}")
    cgroup = [mine / raw for mine, raw in zip(seconds["cgroup"], seconds["raw"], strict=True)]
    print(f"cpuset.mems alone / migratepages: {spread(cgroup, 3)}")
    ratios = [mine / raw for mine, raw in zip(seconds["agent"], seconds["raw"], strict=True)]
    median = statistics.median(ratios)
    verdict = "ok" if median <= TARGET else "MISSED"
    print(f"mitigation, agent / migratepages: {spread(ratios, 3)}, target <= {TARGET}: {verdict}")
    return 0 if median <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
