"""`pondstack-sample`: what latency does to small real kernels, as samples for `pondstack-manage model train --kind li`.

Each kernel runs in local memory, where its counters are read, and then with more and more of its memory on the node
given by --pool-node, as a guest whose zNUMA node was sized wrongly would have it (Pond 6.3). --synthetic makes samples
up where there is no second node; each of its lines says so.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pondstack.domain.errors import HostUnusable, PondError
from pondstack.prediction import sample_generator, sample_report, samples
from pondstack.prediction.samples import Sample
from pondstack_agent.sampler import numa, thread_counters
from pondstack_agent.sampler.arena import Arena
from pondstack_agent.sampler.kernels import KERNELS
from pondstack_agent.sampler.runner import Machine, Runner
from pondstack_agent.telemetry.processors import event_sets, processor

SIZES = (1, 4, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768)
"""Sizes in MiB: from what caches hold to what they do not."""
SPARE = 1.25
"""How much more than a kernel's size has to be free on each node."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exits with a usage error."""
    parser = argparse.ArgumentParser(prog="pondstack-sample", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, one run each; it must not exist")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--pool-node", type=int, metavar="NODE", help="NUMA node of the slower memory")
    where.add_argument("--synthetic", action="store_true", help="make samples up, and say so in each of them")
    parser.add_argument("--local-node", type=int, default=0, metavar="NODE", help="node of CPU and memory (default 0)")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="which, with commas (default: all)")
    parser.add_argument(
        "--sizes",
        default=",".join(map(str, SIZES)),
        metavar="MIB",
        help="sizes in MiB, with commas (default: %(default)s)",
    )
    parser.add_argument("--runs", type=int, default=1, help="runs of each (default 1)")
    parser.add_argument("--seconds", type=float, default=0.3, help="least time of a run in local memory (default 0.3)")
    parser.add_argument("--workloads", type=int, default=158, help="how many to make up (default 158)")
    parser.add_argument("--seed", type=int, default=1, help="of what is made up (default 1)")
    wanted = parser.parse_args(arguments)
    wanted.kernels = [name for name in wanted.kernels.split(",") if name]
    strange = [name for name in wanted.kernels if name not in KERNELS]
    if strange or not wanted.kernels:
        parser.error(f"--kernels: {', '.join(strange) or 'none'}; known: {', '.join(KERNELS)}")
    try:
        wanted.sizes = [int(text) for text in wanted.sizes.split(",")]
    except ValueError:
        parser.error("--sizes: whole numbers of MiB with commas between them")
    if min(wanted.sizes) < 1 or wanted.runs < 1 or wanted.workloads < 1 or not 0.001 <= wanted.seconds <= 3600:
        parser.error("--sizes, --runs and --workloads are 1 or more, --seconds 0.001 to 3600")
    return wanted


def machine(local: int, pool: int, folder: Path = numa.NODES) -> Machine:
    """Bind this process to a node's CPUs and memory. Raises HostUnusable where there are no two nodes."""
    known = numa.nodes(folder)
    if pool == local or not {local, pool} <= set(known):
        raise HostUnusable(
            f"nodes {local} and {pool} are wanted, and this machine has memory on {', '.join(map(str, known))}: give "
            "two nodes by --local-node and --pool-node, or make samples up with --synthetic"
        )
    cpus = numa.cpus(local, folder)
    if not cpus:
        raise HostUnusable(f"node {local} has no CPUs: --local-node is the node that the kernels run on")
    os.sched_setaffinity(0, {cpus[-1]})
    numa.prefer(local)
    cpu = processor()
    share, reason = thread_counters.share_events(cpu, pool, folder)
    return Machine(cpu, event_sets(cpu), share, reason, lambda size, spill: Arena(size, spill, local, pool))


def measured(wanted: argparse.Namespace) -> Iterator[Sample]:
    """Return what runs all kernels, one after the other. Raises HostUnusable."""
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise HostUnusable("numpy is not installed, and the kernels need it: pip install 'pondstack[ml]'") from error
    runner = Runner(machine(wanted.local_node, wanted.pool_node), sample_generator.SPILLS, wanted.seconds)
    for node in (wanted.local_node, wanted.pool_node):
        free = numa.free_mib(node)
        if free < max(wanted.sizes) * SPARE:
            raise HostUnusable(f"node {node} has {free} MiB free, too little for --sizes up to {max(wanted.sizes)}")
    return _runs(runner, wanted)


def _runs(runner: Runner, wanted: argparse.Namespace) -> Iterator[Sample]:
    for kernel in wanted.kernels:
        for mib in wanted.sizes:
            for number in range(wanted.runs):
                yield runner.sample(kernel, mib, number)


def write(found: Iterator[Sample], output: Path) -> list[Sample]:
    """Write each sample as it comes; returns them."""
    done = []
    with output.open("x") as lines:
        for item in found:
            lines.write(f"{samples.dump(item)}\n")
            lines.flush()
            done.append(item)
            if sys.stderr.isatty():
                print(f"\r\x1b[K{len(done)} runs, {item.workload}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return done


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample, write, report; 1 with what is wrong on stderr."""
    wanted = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        if wanted.synthetic:
            found = sample_generator.generate(wanted.workloads, wanted.seed, wanted.runs)
        else:
            found = measured(wanted)
        done = write(found, wanted.output)
    except (PondError, OSError) as error:
        print(f"pondstack-sample: {error.message if isinstance(error, PondError) else error}", file=sys.stderr)
        return 1
    print("\n".join(sample_report.lines(done)))
    print(f"{len(done)} runs: {wanted.output}")
    return 0
