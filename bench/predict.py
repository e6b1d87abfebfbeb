"""`make bench-predict`: how long nova-scheduler takes to decide a split, in its own process, against the former way.

Real: the request filter and all that it calls, Nova's RequestSpec, the background refresh under way, a ledger of
SQLite with 1,000 hosts and 10,000 slices behind the leader's RPC endpoint, a RabbitMQ broker. Not real: Nova's
scheduler around the filter (`make bench-scheduler` has it), Placement (claims are generated, and read at once), the
splits of 10,000 instances and the models' figures of 1,000 projects (generated).

The former way, measured in the same run: ask the controller by RPC, which reads the whole ledger for each split. Runs
of all variants alternate; each run gives one p50 and one p99. Targets: the p99 of all decisions under 2 ms, of all
requests through the filter under 10 ms. Both are judged by the CPU time of the thread that decides, and by the clock,
too, unless more tasks than CPUs want to run (bench.own_cost): the load is printed.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import native  # noqa: F401 - before all that imports Nova

# isort: split
import nova.conf
from nova import objects

from bench.figures import Meter, percentile, spread
from bench.own_cost import Load, Spent, judge, spent
from bench.predict_rack import INSTANCES, Controller
from pondstack.domain.sizing import Features, Policy, PondSpecs
from pondstack.rpc import targets
from pondstack.rpc import transport as rpc
from pondstack.rpc.identity.identity import Role
from pondstack_nova.scheduler import request_filter, split_decision, split_view, used_splits
from pondstack_rack.servers import RabbitMQServer
from tests.fixtures.identities import Identities

CONF = nova.conf.CONF
DECISION_MS, FILTER_MS = 2.0, 10.0
MEMORY_MIB = 16384
AUTO = {"pond:policy": "auto"}
FORMER_SHARE = 100
"""The former way is that much slower, and measured that much less often."""


def make_spec(instance: str) -> Any:
    """Return a new server's request, of policy auto."""
    flavor = objects.Flavor(
        name="bench", vcpus=4, memory_mb=MEMORY_MIB, root_gb=0, ephemeral_gb=0, swap=0, extra_specs=dict(AUTO)
    )
    return objects.RequestSpec(
        flavor=flavor,
        image=None,
        is_bfv=True,
        requested_resources=[],
        instance_uuid=instance,
        project_id="bench",
        numa_topology=None,
    )


def features(instance: str) -> Features:
    """Return what the request filter makes of such a request."""
    return Features(instance, MEMORY_MIB, 4, "bench", specs=PondSpecs(Policy.AUTO))


def decide(_index: int) -> Spent:
    """Time one decision, and forget its promise: nobody will claim it."""
    about = features(str(uuid.uuid4()))
    return spent(lambda: split_decision.decide(None, about, None))


def through_the_filter(_index: int) -> Spent:
    """Time one request through the request filter; a fast wrong answer counts for nothing."""
    spec = make_spec(str(uuid.uuid4()))
    took = spent(lambda: request_filter.pond_split(None, spec))
    decision = used_splits.of(spec)
    assert decision is not None
    assert request_filter.pool_mib_of(spec) == 2048, decision.split
    split_view.cache().pending.add(spec.instance_uuid, 0, 0.0)
    return took


def former(client: Any) -> Callable[[int], Spent]:
    """Return what times one split as schedulers of the former release had it: RPC, whole ledger, all claims."""

    def ask(_index: int) -> Spent:
        about = {
            "instance_uuid": str(uuid.uuid4()),
            "memory_mib": MEMORY_MIB,
            "vcpus": 4,
            "specs": {"policy": "auto"},
        }
        return spent(lambda: client.call({}, "get_split", features=about))

    return ask


def measure(rounds: int, calls: int, variants: dict[str, Callable[[int], Spent]]) -> dict[str, list[list[Spent]]]:
    """Return what the calls of each variant took: one list for each run."""
    found: dict[str, list[list[Spent]]] = {name: [] for name in variants}
    with Meter("runs", rounds) as meter:
        for number in range(rounds):
            for name, variant in variants.items():
                count = calls if name != "former" else max(10, calls // FORMER_SHARE)
                found[name].append([variant(index) for index in range(count)])
            meter.show(number + 1, "")
    return found


TEXTS = {
    "decision": "the decision, in process",
    "filter": "a request through the request filter",
    "former": "the former way: get_split by RPC, whole ledger read",
}


def report(found: dict[str, list[list[Spent]]], hosts: int, slices: int, load: Load) -> bool:
    """Print the figures; True when the targets hold."""
    print(f"\n{hosts} hosts, {slices} slices, {INSTANCES} instances with known splits, refresh under way; {load}")
    for name, runs in found.items():
        every = [item for run in runs for item in run]
        print(f"  {TEXTS[name]} ({len(runs)} runs, {len(every)} calls)")
        for by, attribute in (("clock", "clock_ms"), ("CPU", "cpu_ms")):
            times = [[getattr(item, attribute) for item in run] for run in runs]
            for percent in (50, 99):
                middle = spread([percentile(run, percent) for run in times], 3)
                print(f"    {by:5} p{percent} of each run, median (least - most)   {middle} ms")
        print(f"    clock, of all calls: most {max(item.clock_ms for item in every):.3f} ms")
    ratios = [_middle(theirs) / _middle(ours) for ours, theirs in zip(found["filter"], found["former"], strict=True)]
    print(f"  the former way takes {statistics.median(ratios):.0f} times as long as the filter ({spread(ratios, 0)})")
    good = True
    for name, text, target in (("decision", "a decision", DECISION_MS), ("filter", "the filter", FILTER_MS)):
        told, held = judge(text, [item for run in found[name] for item in run], target, load)
        print(told)
        good = good and held
    print("OK" if good else "MISSED")
    return good


def _middle(calls: list[Spent]) -> float:
    return percentile([item.clock_ms for item in calls], 50)


def run(options: argparse.Namespace, folder: Path, url: str) -> bool:
    """Make the rack, warm up, measure."""
    logging.disable(logging.INFO)
    CONF([], default_config_files=[])
    CONF.set_override("transport_url", url, group="pondstack")
    Identities(folder / "credentials").set(CONF, "scheduler/bench", "controller/bench")
    objects.register_all()
    with Controller(folder, options.hosts, options.slices, url):
        split_view.reset()
        assert split_view.cache().first(60.0) is not None, "the controller does not answer"
        client = rpc.get_transport(CONF, Role.SCHEDULER, url).client(targets.controller_target()).prepare(timeout=60)
        variants = {"decision": decide, "filter": through_the_filter, "former": former(client)}
        for variant in variants.values():
            variant(0)
        before = Load.now()
        found = measure(options.rounds, options.calls, variants)
        load = max(before, Load.now(), key=lambda item: item.tasks)
        split_view.reset()
    return report(found, options.hosts, options.slices, load)


def main(arguments: list[str] | None = None) -> int:
    """Run; 0 when the targets hold, 1 when not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--slices", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=1000, help="of a decision in each run")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ps-bench-", dir="/tmp") as folder:
        broker = RabbitMQServer(Path(folder))
        try:
            broker.start()
            return 0 if run(options, Path(folder), broker.transport_url()) else 1
        finally:
            broker.stop()


if __name__ == "__main__":
    sys.exit(main())
