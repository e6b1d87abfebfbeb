"""`make replay`: replays a trace of VM requests against the running rack's Nova, on its fake computes.

Every request becomes a server of a flavor with pond:policy=auto and departs when its lifetime is over, both by a
compressed clock. At the end the rack must be as it was: exit code 0 only then, and only if nothing but a lack of room
refused a request, and only if every server got its split. See bench/replay.py --help; figures are printed last.
COMPARE=planner has pondstack-planner's engine place the same requests, too: then each difference needs a reason.
"""

import argparse
import os
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from keystoneauth1.exceptions import ClientException

from bench import split_reasons, trace
from bench.agreement import scheduler
from bench.agreement.log import Log
from bench.agreement.recorder import Recorder
from bench.figures import Meter, percentile
from bench.player import Outcome, Player
from bench.watch import Watcher
from pondstack.domain.sizing import STATIC_AUTO_PERCENT, Features, Policy, PondSpecs, StaticShare
from pondstack.domain.units import DEFAULT_SLICE_MIB, GIB_MIB
from pondstack_rack import proof
from pondstack_rack.cloud_client import Cloud, NoRack, gone
from pondstack_rack.layout import RackError

TRAIT = "CUSTOM_POND_REPLAY"
PREFIX = "replay-"
POLL_SECONDS = 0.5
CALM_SECONDS = 60.0
"""A rack that has just come up may still be settling."""

DEFAULT_TRACE = Path("..", "shared", "data", "azure2017", "vm_requests.csv.gz")


class Rack:
    """The player's target: fake computes of the rack, one flavor for each size, made when first needed."""

    def __init__(self, cloud: Cloud, prefix: str, recorder: Recorder) -> None:
        self._cloud, self._prefix, self._recorder = cloud, prefix, recorder
        self._image = cloud.image()
        self._flavors: dict[tuple[int, int], str] = {}

    def prepare(self, requests: Sequence[trace.Request]) -> None:
        """Make the flavors of all requests, so that a boot is not slower because it is the first of its size."""
        for vcpus, memory_mib in sorted({(request.vcpus, request.memory_mib) for request in requests}):
            name = f"{self._prefix}{vcpus}c-{memory_mib}m"
            specs = {"pond:policy": "auto", f"trait:{TRAIT}": "required"}
            self._flavors[vcpus, memory_mib] = self._cloud.create_flavor(name, vcpus, memory_mib, specs)

    def boot(self, request: trace.Request, number: int) -> str:
        """Ask for a server and return its id."""
        self._recorder.look()
        flavor = self._flavors[request.vcpus, request.memory_mib]
        return self._cloud.boot(f"{self._prefix}{number}", flavor, self._image)

    def delete(self, server: str) -> None:
        """Ask for its deletion."""
        self._cloud.delete_server(server)

    def fault(self, server: str) -> str:
        """Return why a server is in ERROR."""
        found = self._cloud.nova.get(f"/servers/{server}").json()["server"]
        return str(found.get("fault", {}).get("message") or "ERROR without a fault")

    def place(self, server: str) -> tuple[str, int]:
        """Return its host, and how much pool memory Placement granted it."""
        return self._recorder.place(server)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when each request was placed with its split or refused for lack of room, and nothing leaked."""
    options = _options(arguments)
    try:
        requests, source = _requests(options)
        cloud = Cloud.of_rack(options.rack)
        if not options.log and not options.compare:
            return _run(options, cloud, requests, source, list)
        with scheduler.told(options.rack, options.io_ops_weight) as told:
            return _run(options, cloud, requests, source, told)
    except (NoRack, RackError, trace.BadTrace) as error:
        print(f"replay: {error}", file=sys.stderr)
    except ClientException as error:
        print(f"replay: the rack does not answer: {error}\n  logs: {options.rack / 'log'}", file=sys.stderr)
    return 2


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make replay", description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=_positive, default=500, help="how many requests (REQUESTS)")
    parser.add_argument("--skip", type=int, default=0, help="how many requests of the trace to leave out first (SKIP)")
    parser.add_argument("--trace", type=Path, help="a file in the format of azure2017; 'synthetic' generates (TRACE)")
    parser.add_argument("--least-mib", type=int, default=0, help="leave out requests for less memory (LEAST_MIB)")
    parser.add_argument("--rack", type=Path, default=Path(os.environ.get("RACK_DIR", ".rack")), help="RACK_DIR")
    parser.add_argument("--in-flight", type=_positive, default=8, help="boots and deletions at once (IN_FLIGHT)")
    parser.add_argument("--speed", type=float, default=10.0, help="seconds of the trace in one second (SPEED)")
    parser.add_argument("--seed", type=int, default=1, help="of what the trace leaves open (SEED)")
    parser.add_argument("--log", type=Path, help="file for where and when each server was placed (LOG)")
    parser.add_argument("--compare", choices=["planner"], help="who else places the same requests (COMPARE)")
    parser.add_argument(
        "--io-ops-weight",
        type=float,
        help="of Nova's IoOpsWeigher, with COMPARE or LOG; default: Nova's (IO_OPS_WEIGHT)",
    )
    options = parser.parse_args(arguments)
    if options.io_ops_weight is not None and not (options.compare or options.log):
        parser.error("--io-ops-weight goes with --compare or --log: nova-scheduler is restarted for these")
    return options


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return value


def _requests(options: argparse.Namespace) -> tuple[list[trace.Request], str]:
    least = f" for at least {options.least_mib} MiB" if options.least_mib else ""
    path = options.trace or Path(__file__).resolve().parents[1] / DEFAULT_TRACE
    if str(options.trace) == "synthetic" or (options.trace is None and not path.exists()):
        synthetic = f"SYNTHETIC requests in the shape of azure2017 (seed {options.seed}){least}"
        return trace.generate(options.requests, options.seed, options.least_mib), synthetic
    try:
        found = trace.load(path, options.requests, options.seed, options.skip, options.least_mib)
    except OSError as error:
        raise trace.BadTrace(f"{path}: {error.strerror}; TRACE=synthetic needs no file") from None
    return found, f"requests of {path.parent.name}/{path.name} from number {options.skip + 1} on{least}"


def _run(
    options: argparse.Namespace,
    cloud: Cloud,
    requests: list[trace.Request],
    source: str,
    told: Callable[[], list[str]],
) -> int:
    prefix = f"{PREFIX}{secrets.token_hex(3)}-"
    fakes = cloud.fake_hosts()
    if left := sum(1 for _ in cloud.servers(PREFIX)):
        print(f"removing {left} servers of an earlier run that was killed", flush=True)
    _clean(cloud, PREFIX, fakes)
    if not fakes:
        raise NoRack("the rack has no fake compute that is up: make rack-down, then make rack FAKES=8")
    before, unclean, _ = proof.settle(lambda: proof.look(cloud, prefix), None, CALM_SECONDS)
    if before is None or unclean:
        raise NoRack("the rack is not clean before the run:\n  " + "\n  ".join(unclean))
    print(f"replaying {len(requests)} {source}, {len(fakes)} fake hosts, {options.in_flight} in flight", flush=True)
    outcomes: list[Outcome] = []
    try:
        for provider in fakes.values():
            cloud.set_trait(provider, TRAIT, present=True)
        recorder = Recorder(cloud, fakes)
        rack = Rack(cloud, prefix, recorder)
        rack.prepare(requests)
        with (
            Watcher(lambda since: cloud.changed_servers(prefix, since), POLL_SECONDS) as watcher,
            Meter("departed", len(requests)) as meter,
        ):
            player = Player(rack, watcher, in_flight=options.in_flight, speed=options.speed, show=meter.show)
            outcomes = player.play(requests)
    finally:
        _clean(cloud, prefix, fakes)
    after, leaked, seconds = proof.settle(lambda: proof.look(cloud, prefix), before)
    _report(outcomes)
    lost = _report_splits(outcomes, cloud)
    verdict = _verdict(outcomes, before, after, leaked, seconds, lost)
    if not options.log and not options.compare:
        return verdict
    log = recorder.log(_about(options, source), outcomes, cloud.source_of_split, told())
    if options.log:
        log.write(options.log)
    return max(verdict, _compare(log) if options.compare else 0)


def _about(options: argparse.Namespace, source: str) -> str:
    weight = options.io_ops_weight
    io_ops = "" if weight is None else f", ASSUMED: Nova's IoOpsWeigher multiplied by {weight:g}"
    return f"{source}, {options.in_flight} in flight{io_ops}"


def _compare(log: Log) -> int:
    from bench.agreement import comparison  # the planner's engine is compiled, and an extra

    return comparison.report(log)


def _clean(cloud: Cloud, prefix: str, fakes: dict[str, str]) -> None:
    """Remove what the run made, after an interruption too."""
    for server in list(cloud.servers(prefix)):
        cloud.delete_server(server["id"])
    for flavor in cloud.flavors(prefix).values():
        gone(cloud.nova.delete, f"/flavors/{flavor}")
    for provider in fakes.values():
        cloud.set_trait(provider, TRAIT, present=False)


def _report(outcomes: Sequence[Outcome]) -> None:
    placed = [item for item in outcomes if item.placed]
    print(f"placed     {len(placed)} of {len(outcomes)}")
    for what in ("rejected", "failed"):
        found = [item for item in outcomes if getattr(item, what)]
        print(f"{what:<10} {len(found)}")
        for reason, count in Counter(item.reason for item in found).most_common(8):
            print(f"  {count:4d}  {reason}")
    asked = sum(item.request.memory_mib for item in outcomes)
    print(f"memory     {asked / GIB_MIB:.0f} GiB asked, {_memory(placed) / GIB_MIB:.0f} GiB placed")
    _report_share(placed)
    for what in ("boot", "delete"):
        times = [value for item in placed if (value := getattr(item, f"{what}_seconds")) is not None]
        low, high = percentile(times, 50), percentile(times, 99)
        print(f"{what:<10} p50 {low:.1f} s, p99 {high:.1f} s (n={len(times)}, seen every {POLL_SECONDS} s)")


def _report_share(placed: Sequence[Outcome]) -> None:
    """The effective share: what was really granted, beside what the policy's percentage would be without rounding."""
    memory, pool = _memory(placed), sum(item.pool_mib for item in placed)
    if not memory:
        return
    ruled = [policy_mib(item.request.memory_mib) for item in placed]
    small = ruled.count(0)
    share, due = 100 * pool / memory, 100 * sum(ruled) / memory
    lost, blank = STATIC_AUTO_PERCENT - due, " " * 10
    print(f"pool       {pool / GIB_MIB:.0f} GiB = {share:.1f} % of the placed memory (effective share)")
    print(
        f"{blank} the static policy says {STATIC_AUTO_PERCENT} %; {lost:.1f} points are lost to whole slices of 1 GiB:"
    )
    print(f"{blank} {due:.1f} % is left, {small} of {len(placed)} VMs are too small for one slice")


def _report_splits(outcomes: Sequence[Outcome], cloud: Cloud) -> int:
    """Print who has no split, and why; return how many."""
    placed = [item for item in outcomes if item.placed]
    without, less = split_reasons.reasons(
        placed, lambda item: policy_mib(item.request.memory_mib), cloud.source_of_split
    )
    print(f"less       {less.total()} VMs got less pool memory than the policy says, by a decision")
    for reason, count in less.most_common():
        print(f"  {count:4d}  {reason}")
    print(f"no split   {without.total()} of {len(placed)} VMs are all local for want of time or of a view")
    for reason, count in without.most_common():
        print(f"  {count:4d}  {reason}")
    return without.total()


def policy_mib(memory_mib: int) -> int:
    """Return the pool share of a VM by the documented static policy, in MiB."""
    features = Features(instance_uuid="", memory_mib=memory_mib, vcpus=1, specs=PondSpecs(policy=Policy.AUTO))
    return StaticShare().predict(features, DEFAULT_SLICE_MIB).pool_mib


def _memory(outcomes: Sequence[Outcome]) -> int:
    return sum(item.request.memory_mib for item in outcomes)


def _verdict(
    outcomes: Sequence[Outcome],
    before: proof.State,
    after: proof.State | None,
    leaked: list[str],
    seconds: float,
    lost: int,
) -> int:
    for pool in after.pools.values() if after else ():
        free = f"{pool.free} of {pool.slices_total} slices free"
        print(f"{pool.name:<10} {free}, {pool.claimed_mib} MiB claimed in Placement")
    if before.allocations:
        print(f"           ({len(before.allocations)} allocations were there before the run, and are not ours)")
    for leak in leaked:
        print(f"LEAK       {leak}")
    failures = sum(item.failed for item in outcomes)
    placed = sum(item.placed for item in outcomes)
    good = not leaked and not failures and not lost and placed > 0
    agree = "agree" if not leaked else "DISAGREE"
    print(f"{len(leaked)} leaks: ledger, Placement and agents {agree} after {seconds:.1f} s, audit included")
    bad = f"FAILED: {len(leaked)} leaks, {failures} failed requests, {lost} VMs without split, {placed} placed"
    print("OK" if good else bad)
    return 0 if good else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that _run cleans up
    sys.exit(main())
