"""`make bench-predict`: how long nova-scheduler takes to decide a split, in its own process, against the former way.

Real: the request filter and all that it calls, Nova's RequestSpec, the background refresh under way, a ledger of
SQLite with 1,000 hosts and 10,000 slices behind the leader's RPC endpoint, a RabbitMQ broker. Not real: Nova's
scheduler around the filter (`make bench-scheduler` has it), Placement (claims are generated, and read at once), the
splits of 10,000 instances and the models' figures of 1,000 projects (generated).

The former way, measured in the same run: ask the controller by RPC, which reads the whole ledger for each split. Runs
of all variants alternate; each run gives one p50 and one p99. Targets: the p99 of all decisions under 2 ms, of all
requests through the filter under 10 ms. By the clock: run it on an idle machine.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import native  # noqa: F401 - before all that imports Nova

# isort: split
import nova.conf
import oslo_messaging
from nova import objects

from bench.figures import Meter, percentile, spread
from bench.predict_rack import INSTANCES, Controller
from pondstack.domain.sizing import Features, Policy, PondSpecs
from pondstack.rpc import transport as rpc
from pondstack_nova.scheduler import request_filter, split_decision, split_view, used_splits
from pondstack_rack.servers import RabbitMQServer

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


def timed(call: Callable[[], object]) -> float:
    """Return how long a call takes, in milliseconds."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def decide(_index: int) -> float:
    """Time one decision, and forget its promise: nobody will claim it."""
    about = features(str(uuid.uuid4()))
    return timed(lambda: split_decision.decide(None, about, None))


def through_the_filter(_index: int) -> float:
    """Time one request through the request filter; a fast wrong answer counts for nothing."""
    spec = make_spec(str(uuid.uuid4()))
    spent = timed(lambda: request_filter.pond_split(None, spec))
    decision = used_splits.of(spec)
    assert decision is not None
    assert request_filter.pool_mib_of(spec) == 2048, decision.split
    split_view.cache().pending.add(spec.instance_uuid, 0, 0.0)
    return spent


def former(client: Any) -> Callable[[int], float]:
    """Return what times one split as schedulers of the former release had it: RPC, whole ledger, all claims."""

    def ask(_index: int) -> float:
        about = {
            "instance_uuid": str(uuid.uuid4()),
            "memory_mib": MEMORY_MIB,
            "vcpus": 4,
            "specs": {"policy": "auto"},
        }
        return timed(lambda: client.call({}, "get_split", features=about))

    return ask


def measure(rounds: int, calls: int, variants: dict[str, Callable[[int], float]]) -> dict[str, list[list[float]]]:
    """Return the times of each variant, in milliseconds: one list for each run."""
    found: dict[str, list[list[float]]] = {name: [] for name in variants}
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


def report(found: dict[str, list[list[float]]], hosts: int, slices: int) -> bool:
    """Print the figures; True when the targets hold."""
    print(f"\n{hosts} hosts, {slices} slices, {INSTANCES} instances with known splits, refresh under way")
    overall = {}
    for name, runs in found.items():
        every = [value for run in runs for value in run]
        overall[name] = percentile(every, 99)
        middle, most = percentile(every, 50), max(every)
        print(f"  {TEXTS[name]} ({len(runs)} runs, {len(every)} calls)")
        print(f"    p50 of each run, median (least - most)   {spread([percentile(run, 50) for run in runs], 3)} ms")
        print(f"    p99 of each run, median (least - most)   {spread([percentile(run, 99) for run in runs], 3)} ms")
        print(f"    of all calls: p50 {middle:.3f} ms, p99 {overall[name]:.3f} ms, most {most:.3f} ms")
    pairs = zip(found["filter"], found["former"], strict=True)
    ratios = [percentile(theirs, 50) / percentile(ours, 50) for ours, theirs in pairs]
    print(f"  the former way takes {statistics.median(ratios):.0f} times as long as the filter ({spread(ratios, 0)})")
    good = overall["decision"] < DECISION_MS and overall["filter"] < FILTER_MS
    print(f"p99 of a decision   {overall['decision']:.3f} ms  target < {DECISION_MS:.0f} ms")
    print(f"p99 of the filter   {overall['filter']:.3f} ms  target < {FILTER_MS:.0f} ms")
    print("OK" if good else "MISSED")
    return good


def run(options: argparse.Namespace, folder: Path, url: str) -> bool:
    """Make the rack, warm up, measure."""
    logging.disable(logging.INFO)
    CONF([], default_config_files=[])
    CONF.set_override("transport_url", url, group="pondstack")
    objects.register_all()
    with Controller(folder, options.hosts, options.slices, url):
        split_view.reset()
        assert split_view.cache().first(60.0) is not None, "the controller does not answer"
        client = oslo_messaging.get_rpc_client(rpc.get_transport(CONF, url), rpc.controller_target(), timeout=60)
        variants = {"decision": decide, "filter": through_the_filter, "former": former(client)}
        for variant in variants.values():
            variant(0)
        found = measure(options.rounds, options.calls, variants)
        split_view.reset()
    return report(found, options.hosts, options.slices)


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
