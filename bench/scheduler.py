"""`make bench-scheduler`: select_destinations at 1,000 hosts with pondstack's plugins against without, in one process.

Real: nova-scheduler's manager with its database (SQLite), host manager, filters, weighers and claims; Placement's WSGI
application (SQLite), called in process; the views that it
asks for over a RabbitMQ broker. Not real: nova-compute (hosts are rows in the databases) and the controller behind the
broker (no ledger).

Two questions, both must hold. A plain VM: Nova as it comes against Nova with our filter, weighers and request filter. A
VM with pool memory: Nova as it comes with the same share written into the flavor by hand (the same Placement request),
against our plugins that decide the split. What pool memory itself costs Placement is shown, and is no target.
Runs of all variants alternate, the order turning by one each round; each round gives one ratio.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from bench import native  # noqa: F401 - before all that imports Nova

# isort: split
import fixtures
import nova.conf
from nova import context, objects
from nova.scheduler import manager, request_filter

from bench.figures import Meter
from bench.many_hosts import ManyHosts
from pondstack.domain.units import RESOURCE_CLASS
from pondstack_nova.flavors import LOCAL_KEY, POOL_KEY
from pondstack_nova.scheduler import snapshot, split_view
from pondstack_nova.scheduler.request_filter import pond_split
from pondstack_rack.servers import RabbitMQServer
from tests.fixtures.identities import Identities
from tests.functional.stand_in import Serving

CONF = nova.conf.CONF
TARGET = 1.10
MEMORY_MIB, POOL_MIB = 8192, 2048
BY_HAND = {LOCAL_KEY: str(MEMORY_MIB - POOL_MIB), POOL_KEY: str(POOL_MIB)}
BY_US = {"pond:policy": "fixed", "pond:pool_mb": str(POOL_MIB)}


@dataclass
class Variant:
    """One way to schedule. `seconds` and `cpu_seconds` (all threads of the process): one sample a round."""

    text: str
    plugins: bool
    extra_specs: dict[str, str]
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        """Median time in milliseconds."""
        return statistics.median(self.seconds) * 1000


VARIANTS = {
    "plain-stock": Variant("plain VM, Nova as it comes", False, {}),
    "plain-pond": Variant("plain VM, with our plugins", True, {}),
    "pool-stock": Variant("pool VM, share by hand in the flavor, Nova as it comes", False, BY_HAND),
    "pool-pond": Variant("pool VM, share by our plugins", True, BY_US),
}


class Bench(ManyHosts):
    """The run itself: a test case, because Nova's in-process services come as fixtures."""

    hosts_count = 1000
    rounds = 15
    broker: RabbitMQServer

    def runTest(self) -> None:
        """Fill, warm up, measure."""
        logging.disable(logging.INFO)  # Nova's test fixtures format every debug line, production does not
        self.use_broker()
        with Meter("hosts", self.hosts_count) as meter:
            self.fill(self.hosts_count, lambda done: meter.show(done, ""))
        schedulers = {plugins: self.make_scheduler(plugins) for plugins in (False, True)}
        for variant in VARIANTS.values():
            self.measure(schedulers[variant.plugins], variant)
        for variant in VARIANTS.values():
            variant.seconds.clear()
            variant.cpu_seconds.clear()
        with Meter("rounds", self.rounds) as meter:
            for number in range(self.rounds):
                order = list(VARIANTS.values())
                for variant in order[number % len(order) :] + order[: number % len(order)]:
                    self.measure(schedulers[variant.plugins], variant)
                meter.show(number + 1, "")

    def use_broker(self) -> None:
        """Serve the stand-in on a real broker and let the plugins ask there."""
        self.stop_controller()
        self.flags(
            transport_url=self.broker.transport_url(),
            split_timeout_ms=500,
            snapshot_interval_seconds=2,
            group="pondstack",
        )
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        Identities(folder).set(CONF, "scheduler/bench", "controller/controller")
        split_view.reset()
        snapshot.reset()
        self.controller_server = Serving(self.controller, CONF, self.broker.transport_url())

    def make_scheduler(self, plugins: bool) -> manager.SchedulerManager:
        """Return a scheduler with Nova's default filters and weighers, or with ours besides."""
        filters = CONF._get_opt_info("enabled_filters", "filter_scheduler")["opt"].default
        self.flags(
            enabled_filters=[*filters, "PondFilter"] if plugins else list(filters),
            weight_classes=[
                "pondstack_nova.weigher.all_weighers" if plugins else "nova.scheduler.weights.all_weighers"
            ],
            group="filter_scheduler",
        )
        return manager.SchedulerManager()

    def measure(self, scheduler: manager.SchedulerManager, variant: Variant) -> None:
        """Time one request of a variant, and undo its claim."""
        instance = str(uuid.uuid4())
        spec, admin = self.make_spec(instance, variant.extra_specs), context.get_admin_context()
        request_filter.ALL_REQUEST_FILTERS[:] = [
            item for item in request_filter.ALL_REQUEST_FILTERS if item is not pond_split
        ] + ([pond_split] if variant.plugins else [])
        began, cpu_began = time.perf_counter(), time.process_time()
        scheduler.select_destinations(
            admin, spec_obj=spec, instance_uuids=[instance], return_objects=True, return_alternates=True
        )
        variant.seconds.append(time.perf_counter() - began)
        variant.cpu_seconds.append(time.process_time() - cpu_began)
        self.check(instance, pool=bool(variant.extra_specs))
        self.placement.delete(f"/allocations/{instance}")

    def check(self, instance: str, pool: bool) -> None:
        """A fast wrong answer counts for nothing: the claim must be what was asked for."""
        allocations = self.placement.get(f"/allocations/{instance}").body["allocations"]
        totals: dict[str, int] = {}
        for allocation in allocations.values():
            for resource, amount in allocation["resources"].items():
                totals[resource] = totals.get(resource, 0) + amount
        expected = {"VCPU": 2, "MEMORY_MB": MEMORY_MIB, "DISK_GB": 10}
        if pool:
            expected |= {"MEMORY_MB": MEMORY_MIB - POOL_MIB, RESOURCE_CLASS: POOL_MIB}
        assert totals == expected, f"{instance} claims {totals}, not {expected}"

    @staticmethod
    def make_spec(instance: str, extra_specs: dict[str, str]) -> objects.RequestSpec:
        """Return a request as conductor sends it."""
        flavor = objects.Flavor(
            id=1,
            flavorid="bench",
            name="bench",
            vcpus=2,
            memory_mb=MEMORY_MIB,
            root_gb=10,
            ephemeral_gb=0,
            swap=0,
            rxtx_factor=1.0,
            vcpu_weight=0,
            disabled=False,
            is_public=True,
            description=None,
            projects=[],
            extra_specs=dict(extra_specs),
        )
        return objects.RequestSpec(
            context.get_admin_context(),
            flavor=flavor,
            image=objects.ImageMeta(properties=objects.ImageMetaProps()),
            instance_uuid=instance,
            num_instances=1,
            project_id="bench",
            user_id="bench",
            is_bfv=False,
            requested_resources=[],
            request_level_params=objects.RequestLevelParams(),
            numa_topology=None,
            pci_requests=objects.InstancePCIRequests(requests=[]),
            availability_zone=None,
            force_hosts=None,
            force_nodes=None,
            ignore_hosts=None,
            instance_group=None,
            requested_destination=None,
            retry=None,
            scheduler_hints={},
            limits=objects.SchedulerLimits(),
            security_groups=objects.SecurityGroupList(objects=[]),
            requested_networks=objects.NetworkRequestList(objects=[]),
        )


def ratios(over: str, under: str, samples: str = "seconds") -> list[float]:
    """Return one ratio a round."""
    pairs = zip(getattr(VARIANTS[over], samples), getattr(VARIANTS[under], samples), strict=True)
    return [ours / theirs for ours, theirs in pairs]


def line(text: str, values: list[float], target: float | None) -> str:
    """Return a line of the table: median and spread of a ratio."""
    median = statistics.median(values)
    low, high = statistics.quantiles(values, n=10)[0], statistics.quantiles(values, n=10)[-1]
    verdict = "" if target is None else f"  target <= {target:.2f}: {'met' if median <= target else 'MISSED'}"
    return f"  {text:<66} {median:5.3f}  ({low:.3f} to {high:.3f}){verdict}"


def report(rounds: int, hosts: int) -> bool:
    """Print the figures; True when the targets hold."""
    print(f"\nselect_destinations, {hosts} hosts, {rounds} rounds; median of each variant:")
    for variant in VARIANTS.values():
        print(f"  {variant.text:<66} {variant.median_ms:8.1f} ms")
    plain, pool = ratios("plain-pond", "plain-stock"), ratios("pool-pond", "pool-stock")
    print("\nratio of each round, median (10th to 90th percentile):")
    print(
        line(
            "pool VM to plain VM, both Nova as it comes (Placement's own cost)",
            ratios("pool-stock", "plain-stock"),
            None,
        )
    )
    print("  of processor time, which a busy machine disturbs less:")
    for over, under, text in (("plain-pond", "plain-stock", "plain VM"), ("pool-pond", "pool-stock", "pool VM")):
        print(line(f"  {text}, with our plugins to without", ratios(over, under, "cpu_seconds"), None))
    print("  of time, which is the target:")
    print(line("plain VM, with our plugins to without", plain, TARGET))
    print(line("pool VM, with our plugins to without", pool, TARGET))
    return statistics.median(plain) <= TARGET and statistics.median(pool) <= TARGET


def main(arguments: list[str] | None = None) -> int:
    """Run; 0 when the targets hold, 1 when not, 2 when it could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ps-bench-", dir="/tmp") as folder:
        broker = RabbitMQServer(Path(folder))
        try:
            broker.start()
            Bench.hosts_count, Bench.rounds, Bench.broker = options.hosts, options.rounds, broker
            result = Bench("runTest").run()
        finally:
            logging.disable(logging.CRITICAL)  # connections that outlive the broker would complain
            broker.stop()
    if not result.wasSuccessful():
        for _, text in [*result.errors, *result.failures]:
            print(text[-4000:], file=sys.stderr)
        return 2
    return 0 if report(options.rounds, options.hosts) else 1


if __name__ == "__main__":
    sys.exit(main())
