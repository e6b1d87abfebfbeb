"""Small worlds for tests of the reconciler's rules: one pool of eight slices, hosts h1 and h2."""

from dataclasses import dataclass, field, replace

from pondstack.controller.reconcile.holders import Claims
from pondstack.controller.reconcile.observation import Limits, Observation
from pondstack.devices.base import Permission
from pondstack.domain.causes import Cause
from pondstack.domain.model import Allocation, Extent, Pool, PoolState, Slice, indexes_of
from pondstack.domain.rack import AgedAllocation, AgedSlice, HostReport, PoolDetail, RackView
from pondstack.domain.states import OWNED, SliceState

POOL = "11111111-1111-4111-8111-111111111111"
OLD = 1000.0
"""Age in seconds of everything that is long settled."""

REPORT_AGE = 1.0
DOWN = 100.0
IDLE = Allocation("a1", "vm1", "h1", POOL, (Extent(0, 2),), guest_mib=4096)


@dataclass
class Builder:
    """An observation in which everything agrees; a test breaks one thing."""

    slices: dict[int, AgedSlice] = field(
        default_factory=lambda: {index: AgedSlice(Slice(POOL, index), OLD) for index in range(8)}
    )
    allocations: dict[str, AgedAllocation] = field(default_factory=dict)
    ages: dict[str, float] = field(default_factory=lambda: {"h1": REPORT_AGE, "h2": REPORT_AGE})
    attached: dict[str, list[dict]] = field(default_factory=lambda: {"h1": [], "h2": []})
    permissions: dict[int, Permission] = field(default_factory=dict)
    claims: dict[str, tuple[str, int]] = field(default_factory=dict)
    remote: dict[str, int] | None = None
    local_mib: int = IDLE.guest_mib - IDLE.pool_mib
    placement: bool = True
    pool_state: PoolState = PoolState.UP
    failures: int = 1
    failing_seconds: float | None = None
    fenced: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, dict[str, str]] = field(default_factory=dict)

    def allocate(
        self, item=IDLE, state=SliceState.ONLINE, *, age=OLD, unclaimed=None, attached=True, claimed=True, in_use=True
    ):
        """Add an allocation that all four sources agree on, unless told otherwise."""
        self.allocations[item.uuid] = AgedAllocation(item, age, unclaimed)
        for index in indexes_of(item.extents):
            self.put(index, state, age=age, host=item.host, allocation=item.uuid)
            if state in OWNED:
                self.permissions[index] = Permission(item.host, item.uuid, 1)
        if attached:
            self.attach(item.host, item.uuid, item.extents, in_use=in_use)
        if claimed and unclaimed is None:
            self.claims[item.consumer_uuid] = (item.host, item.pool_mib)
        return self

    def attach(self, host, uuid, extents, *, in_use=True):
        """Have a host report an allocation."""
        runs = [{"start": extent.start, "count": extent.count} for extent in extents]
        self.attached[host].append(
            {"allocation_uuid": uuid, "consumer_uuid": "vm1", "pool_uuid": POOL, "extents": runs, "in_use": in_use}
        )
        return self

    def put(self, index, state, *, age=OLD, host=None, allocation=None, cause=Cause.UNKNOWN, failure=None):
        """Set one slice. The reason is for people: no rule may look at it."""
        why = {"cause": cause, "failure": failure} if state is SliceState.QUARANTINED else {}
        item = Slice(POOL, index, state, host, allocation, reason="for the test", **why)
        self.slices[index] = AgedSlice(item, age)
        return self

    def silence(self, host="h1"):
        """Have a host's agent go down."""
        self.ages[host] = DOWN
        return self

    def fail(self, seconds=OLD, failures=1):
        """Have the pool's device not answer for some seconds."""
        self.pool_state, self.failing_seconds, self.failures = PoolState.FAILED, seconds, failures
        self.permissions.clear()
        return self

    def fence(self, host="h1", reason="it burns"):
        """Have a host be fenced."""
        self.fenced[host] = reason
        return self

    def observation(self, **limits) -> Observation:
        """Return the observation."""
        pool = replace(Pool(POOL, "pool0", 8), state=self.pool_state)
        hosts = {
            name: HostReport(
                name,
                True,
                "",
                f"provider-{name}",
                age,
                tuple(self.attached[name]),
                (POOL,),
                self.fenced.get(name),
                self.stuck.get(name, {}),
            )
            for name, age in self.ages.items()
        }
        detail = PoolDetail(pool, "fake", "S1", {}, tuple(hosts), self.failures)
        view = RackView({POOL: detail}, tuple(self.slices.values()), self.allocations, hosts)
        consumers = {
            name: {consumer: self.local_mib for consumer, (host, _) in self.claims.items() if host == name}
            for name in {aged.item.host for aged in self.allocations.values()}  # Placement is asked for no others
        }
        pools = {POOL: {consumer: mib for consumer, (_, mib) in self.claims.items()}}
        claims = Claims(pools, consumers, self.remote) if self.placement else None
        failing = {} if self.failing_seconds is None else {POOL: self.failing_seconds}
        tables = {} if self.failing_seconds is not None else {POOL: self.permissions}
        return Observation(view, claims, tables, Limits(**limits), failing=failing)
