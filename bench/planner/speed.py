"""`make bench-planner`: the replay beside CloudSim Plus, and its time and memory up to ten million servers.

Both get the same SYNTHETIC trace and the same hosts, with room for all servers, and each places all of them. CPU
seconds of the simulations alone count: neither the JVM's start nor compilation. CloudSim Plus comes from Maven Central
by `mvn` (Maven and a JDK of version 17 or later are needed). Exit code 0 only when the replay is at least 50 times as
fast, and ten million servers take no longer each than one million, within a half, and at most 16 GiB.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.figures import spread
from bench.planner import cloudsim
from bench.planner.requests import synthetic
from pondstack.planner import dram
from pondstack.planner.cluster import Cluster, replay
from pondstack.planner.history import Sampler
from pondstack.planner.settings import Settings
from pondstack.planner.sizing import sizes_of

FASTER, LONGER, MOST_GIB = 50.0, 1.5, 16.0
VCPUS, HOST_MIB = 48, 256 * 1024
POOL_SOCKETS, POOL_SLICES, LOCAL_MIB = 16, 16 * 40, 100 * 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when both targets hold, 2 when there is no CloudSim Plus."""
    options = _options(arguments)
    if options.child:
        print(json.dumps(_measure(options.child)))
        return 0
    try:
        ratios = _against_cloudsim(options)
    except cloudsim.NoCloudSim as error:
        print(f"bench-planner: {error}", file=sys.stderr)
        return 2
    sizes = [_in_process(count) for count in options.counts]
    return _verdict(ratios, sizes)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-planner", description=__doc__.partition("\n")[0])
    parser.add_argument("--servers", type=int, default=2000, help="of the comparison (SERVERS)")
    parser.add_argument("--hosts", type=int, default=100, help="of the comparison (HOSTS)")
    parser.add_argument("--rounds", type=int, default=3, help="of the comparison (ROUNDS)")
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000], help="servers of the long replays"
    )
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _against_cloudsim(options: argparse.Namespace) -> list[float]:
    trace, ratios = synthetic(options.servers), []
    history = Sampler(trace, Settings(sockets=10**6)).whole()
    none, cluster = np.zeros(trace.servers.height, np.int32), Cluster(options.hosts, VCPUS, HOST_MIB)
    replay(history, none, cluster, Settings())  # compiles
    with tempfile.TemporaryDirectory(prefix="cloudsim-") as folder:
        cloudsim.fetch(Path(folder))
        for _ in range(options.rounds):
            begun = time.process_time()
            outcome = replay(history, none, cluster, Settings())
            seconds = time.process_time() - begun
            other = cloudsim.replay(Path(folder), trace, options.hosts, VCPUS, HOST_MIB)
            placed = int((~outcome.rejected).sum())
            print(f"ours {seconds:.4f} s, {placed} placed; CloudSim Plus {other.seconds:.2f} s, {other.placed} placed")
            if not placed == other.placed == trace.servers.height:
                raise cloudsim.NoCloudSim("not all servers were placed by both: give more HOSTS")
            ratios.append(other.seconds / seconds)
    return ratios


def _in_process(count: int) -> dict[str, float]:
    """Replay in a process of its own, whose peak of memory is that of this trace alone."""
    command = [sys.executable, "-m", "bench.planner.speed", "--child", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    each = 1e6 * found["seconds"] / count
    print(f"{count:>10,} servers: {found['seconds']:.1f} CPU s, {each:.2f} us each, peak {found['gib']:.2f} GiB, "
          f"{found['sockets']:.0f} sockets")  # fmt: skip
    return {**found, "each": each}


def _measure(count: int) -> dict[str, float]:
    """Load, size and replay with pools; only the replay is timed, all of it is counted as memory."""
    settings = Settings(sockets=10**6)
    history = Sampler(synthetic(count), settings).whole()
    pool_mib = sizes_of("pond", history, settings, 190.0).pool_mib
    cluster = Cluster(history.sockets, settings.vcpus_per_socket, LOCAL_MIB, POOL_SOCKETS, POOL_SLICES)
    _compile(settings)
    begun = time.process_time()
    outcome = replay(history, pool_mib, cluster, settings)
    seconds = time.process_time() - begun
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    share = dram.effective_share(history, outcome, settings.slice_mib)
    return {"seconds": seconds, "gib": gib, "sockets": float(history.sockets), "share": share}


def _compile(settings: Settings) -> None:
    few = Sampler(synthetic(100), settings).whole()
    replay(few, np.zeros(100, np.int32), Cluster(4, 48, LOCAL_MIB, 2, 8), settings)


def _verdict(ratios: list[float], sizes: list[dict[str, float]]) -> int:
    longer = sizes[-1]["each"] / sizes[0]["each"]
    most = max(item["gib"] for item in sizes)
    print(f"faster     {spread(ratios, 0)} times, n={len(ratios)}; target: at least {FASTER:.0f} each time")
    print(f"each       {longer:.2f} times the time of the least count; target: at most {LONGER}")
    print(f"memory     {most:.2f} GiB at the peak; target: at most {MOST_GIB:.0f}")
    good = min(ratios) >= FASTER and longer <= LONGER and most <= MOST_GIB
    print("OK" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
