"""Whatever the cloud: a plan never claims more than Placement has, nor loads a destination beyond its threshold."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pondstack.consolidation.decision import overload, placement, selection, underload
from pondstack.consolidation.decision.decider import decide
from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostState, Reading, Snapshot
from pondstack.domain.plan import ActionKind, Afterwards

from .builders import host, server, snapshot

CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_POND_REMOTE_MB")


@st.composite
def clouds(draw):
    names = [f"h{number}" for number in range(draw(st.integers(1, 6)))]
    hosts = {}
    for name in names:
        load = tuple(draw(st.lists(st.floats(0, 100), min_size=3, max_size=5)))
        capacity = {key: draw(st.integers(0, 12)) for key in draw(st.sets(st.sampled_from(CLASSES)))}
        used = {key: draw(st.integers(0, amount)) for key, amount in capacity.items()}
        state = draw(st.sampled_from([HostState.AWAKE, HostState.AWAKE, HostState.ASLEEP]))
        free = Reading(draw(st.floats(0, 20)), 0.0)
        lends = draw(st.integers(0, 12))
        hosts[name] = host(name, *load, capacity=capacity, used=used, free_mib=free, state=state, lends_mib=lends)
    servers = []
    for number in range(draw(st.integers(0, 12))):
        claim = {key: draw(st.integers(1, 6)) for key in draw(st.sets(st.sampled_from(CLASSES)))}
        ends = draw(st.one_of(st.none(), st.floats(0, 1e6)))
        on, cpus, mib = draw(st.sampled_from(names)), draw(st.floats(0, 4)), draw(st.integers(1, 8))
        servers.append(server(f"s{number}", on, cpus=cpus, mib=mib, claim=claim, remaining_seconds=ends))
    return Snapshot(hosts, tuple(servers))


@st.composite
def ways(draw):
    return Settings(
        underload=draw(st.sampled_from(sorted(underload.ALGORITHMS))),
        overload=draw(st.sampled_from(sorted(overload.ALGORITHMS))),
        selection=draw(st.sampled_from(sorted(selection.ALGORITHMS))),
        placement=draw(st.sampled_from(sorted(placement.ALGORITHMS))),
        underload_percent=draw(st.floats(0, 100)),
        readings=3,
        most_migrations=draw(st.integers(0, 12)),
        least_awake=draw(st.integers(0, 3)),
        afterwards=draw(st.sampled_from(Afterwards)),
    )


@settings(max_examples=100, deadline=None)
@given(clouds(), ways())
def test_a_plan_never_exceeds_placement(cloud, chosen):
    """Both ends of a migration hold the claim until it has ended: what leaves a host is not counted as free."""
    found = decide(cloud, chosen)
    servers = {item.uuid: item for item in cloud.servers}
    used = {name: Counter(item.used) for name, item in cloud.hosts.items()}
    moved: Counter[str] = Counter()
    for action in found.actions:
        if action.kind is ActionKind.MIGRATE:
            moved[action.server_uuid] += 1
            used[action.destination].update(servers[action.server_uuid].claim)
    for name, item in cloud.hosts.items():
        before, may = item.used, Counter(item.capacity)
        if item.state is HostState.ASLEEP and "MEMORY_MB" in may:
            may["MEMORY_MB"] += item.lends_mib  # that Placement has again once the host is awake
        assert all(amount <= may[key] for key, amount in used[name].items() if amount > before.get(key, 0))
    assert max(moved.values(), default=0) <= 1
    assert sum(moved.values()) == found.effect.migrations <= chosen.most_migrations


@settings(max_examples=100, deadline=None)
@given(clouds(), ways())
def test_a_plan_loads_no_destination_beyond_its_limit_and_empties_none(cloud, chosen):
    found = decide(cloud, chosen)
    servers = {item.uuid: item for item in cloud.servers}
    moves = [item for item in found.actions if item.kind is ActionKind.MIGRATE]
    emptied = {item.host for item in found.actions if item.kind is ActionKind.DISABLE}
    for name in {item.destination for item in moves}:
        assert name not in emptied
        taken = [servers[item.server_uuid] for item in moves if item.destination == name]
        load = sum(item.used_cpus.value for item in taken)
        asleep = cloud.hosts[name].state is HostState.ASLEEP
        load += 0 if asleep else 10 * cloud.hosts[name].load[-1] / 100
        assert load <= 10 * chosen.overload_percent / 100 + 1e-6
    awake = [item for item in cloud.hosts.values() if item.state is HostState.AWAKE]
    woken = [item.host for item in found.actions if item.kind is ActionKind.WAKE]  # the applier looks again at each one
    assert len(awake) + len(woken) - len(emptied) >= min(chosen.least_awake, len(awake))
    for name in emptied:
        assert {item.server_uuid for item in moves if item.host == name} == {
            item.uuid for item in cloud.servers if item.host == name
        }


def test_what_a_host_lends_already_is_no_gain():
    idle = replace(host("b", 1.0), free_mib=Reading(60_000.0, 0.0), lends_mib=30_000)
    settings = Settings(afterwards=Afterwards.LEND)
    gained = [
        decide(snapshot(host("a", 30.0), replace(idle, most_mib=most)), settings).effect.gained_mib
        for most in (None, 50_000.0, 30_000.0, 10_000.0)
    ]
    assert gained == [60_000, 20_000, 0, 0]
