"""What controllers answer to a scrape: each for itself, the leader for the rack, without what cannot be read."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pondstack.controller.node.metrics import MetricsServer, Scrape
from pondstack.domain.allowance import Allowance
from pondstack.domain.errors import Unavailable
from pondstack.domain.free_buffer import FreeBuffer
from pondstack.domain.host_sleep import SleepState
from pondstack.domain.mitigation import MitigationMethod, MitigationState
from pondstack.domain.plan import ActionState, PlanKind, PlanState
from pondstack.ledger.qos_records import QosDecision
from pondstack.telemetry.metrics import TABLE, Counts, Kind
from pondstack_rack.wait import wait_until

SECONDS = 60.0
GIB = 1024.0**3
DECIDED = QosDecision("vm", "a1", "blue", "h1", "sensitive", "mitigate", "on", "", None, None)


def leader(**changes):
    """Return what a scrape reads of a leader."""
    pool = SimpleNamespace(
        name="pool0",
        state="up",
        slice_mib=1024,
        slices={"free": 6, "online": 2, "quarantined": 0},
        free_buffer=FreeBuffer(slices=2, misses=3),
    )
    open_ones = [(MitigationState.MOVING, MitigationMethod.COPY)] * 2 + [
        (MitigationState.MOVING, MitigationMethod.MIGRATE)
    ]
    reader = SimpleNamespace(
        pools=lambda: [pool],
        hosts=lambda: [SimpleNamespace(up=up) for up in (True, True, False)],
        qos=SimpleNamespace(reclaimable=lambda: (4, 5120)),
    )
    made = SimpleNamespace(
        epoch=7,
        reader=reader,
        mitigations=SimpleNamespace(
            unended=lambda: [SimpleNamespace(state=state, method=method) for state, method in open_ones]
        ),
        consolidation=SimpleNamespace(unattended=lambda: [SimpleNamespace(state=PlanState.RUNNING)] * 2),
        sleeps=SimpleNamespace(unended=lambda: [SimpleNamespace(state=SleepState.ASLEEP)] * 3),
        quality=SimpleNamespace(monitor=SimpleNamespace(verdicts={"sensitive": 1, "fits": 9})),
        predictions=SimpleNamespace(allowance=lambda: Allowance(1.5, {})),
    )
    vars(made).update(changes)
    return made


def scraped(found, counts=None):
    """Return the samples of a scrape by name and labels."""
    scrape = Scrape(lambda: found, counts or Counts())
    return {
        (sample.name, *sample.labels.values()): sample.value for family in scrape.collect() for sample in family.samples
    }


def test_the_leader_tells_of_the_rack():
    found = scraped(leader())
    wanted = {
        ("pondstack_leading",): 1.0,
        ("pondstack_epoch",): 7.0,
        ("pondstack_agents", "up"): 2.0,
        ("pondstack_agents", "down"): 1.0,
        ("pondstack_pool_up", "pool0"): 1.0,
        ("pondstack_slices", "pool0", "free"): 6.0,
        ("pondstack_slices", "pool0", "quarantined"): 0.0,
        ("pondstack_slice_bytes", "pool0"): GIB,
        ("pondstack_free_buffer_slices", "pool0"): 2.0,
        ("pondstack_free_buffer_misses_total", "pool0"): 3.0,
        ("pondstack_qos_servers", "fits"): 9.0,
        ("pondstack_qos_servers", "sensitive"): 1.0,
        ("pondstack_qos_servers", "unobserved"): 0.0,
        ("pondstack_plans_open", "running"): 2.0,
        ("pondstack_host_sleeps", "asleep"): 3.0,
        ("pondstack_mitigations_open", "moving", "copy"): 2.0,
        ("pondstack_mitigations_open", "moving", "migrate"): 1.0,
        ("pondstack_model_budget_left",): 1.5,
        ("pondstack_reclaimable_bytes",): 5 * GIB,
    }
    assert {key: found.get(key) for key in wanted} == wanted


def test_a_stand_by_tells_of_itself_only():
    counts = Counts()
    counts.decided(DECIDED)
    found = scraped(None, counts)
    assert found["pondstack_leading",] == found["pondstack_epoch",] == 0.0
    assert found["pondstack_qos_decisions_total", "sensitive", "mitigate", "on"] == 1.0, "what it counted as the leader"
    assert not [key for key in found if key[0].startswith(("pondstack_slice", "pondstack_agents", "pondstack_model"))]


def test_what_this_process_counted():
    counts = Counts()
    assert scraped(None, counts)["pondstack_mitigation_changes_total", "failed", "copy"] == 0.0
    for seconds in (4.0, 90.0):
        counts.mitigation_changed(MitigationState.DONE, MitigationMethod.COPY)
        counts.mitigation_ended(MitigationState.DONE, MitigationMethod.COPY, seconds)
    found = scraped(None, counts)
    assert found["pondstack_mitigation_changes_total", "done", "copy"] == 2.0
    assert found["pondstack_mitigation_seconds_count", "done", "copy"] == 2.0
    assert found["pondstack_mitigation_seconds_sum", "done", "copy"] == 94.0
    assert found["pondstack_mitigation_seconds_bucket", "done", "copy", "5.0"] == 1.0


def test_plans_and_sleeps_are_counted():
    counts = Counts()
    assert scraped(None, counts)["pondstack_plan_migrations_total", "failed"] == 0.0
    counts.plan_ended(PlanKind.DRAIN, PlanState.FAILED)
    counts.plan_migration_ended(ActionState.DONE)
    counts.host_sleep_changed(SleepState.ASLEEP)
    found = scraped(None, counts)
    assert found["pondstack_plan_ends_total", "drain", "failed"] == 1.0
    assert found["pondstack_plan_migrations_total", "done"] == 1.0
    assert found["pondstack_host_sleep_changes_total", "asleep"] == 1.0


def test_what_is_not_known_is_left_out():
    quiet = leader(
        quality=SimpleNamespace(monitor=SimpleNamespace(verdicts=None)),
        predictions=SimpleNamespace(allowance=lambda: None),
    )
    names = {key[0] for key in scraped(quiet)}
    assert not names & {"pondstack_qos_servers", "pondstack_model_budget_left"}


def test_a_part_that_cannot_be_read_is_counted_and_costs_no_other():
    def silent():
        raise Unavailable("the database does not answer")

    ill, counts = leader(), Counts()
    ill.reader.pools = silent
    found = scraped(ill, counts)
    assert found["pondstack_unread_total", "pools"] == 1.0
    assert found["pondstack_unread_total", "agents"] == 0.0
    assert ("pondstack_slices", "pool0", "free") not in found
    assert found["pondstack_agents", "up"] == 2.0


def test_each_metric_is_one_of_the_table_with_its_kind_and_meaning():
    counts = Counts()
    counts.decided(DECIDED)
    counts.mitigation_ended(MitigationState.DONE, MitigationMethod.COPY, 1.0)
    families = list(Scrape(leader, counts).collect())
    told = {
        (family.name + "_total" * (family.type == "counter"), family.type, family.documentation) for family in families
    }
    assert told == {(metric.name, str(metric.kind), metric.meaning) for metric in TABLE}
    for metric in TABLE:
        name = metric.name.removesuffix("_total")
        samples = next(family.samples for family in families if family.name == name)
        assert samples, metric.name
        wanted = {*metric.labels, *(["le"] if metric.kind is Kind.HISTOGRAM else [])}
        assert {label for sample in samples for label in sample.labels} == wanted, metric.name


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder


def answer(port):
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS) as reply:
        return {family.name for family in text_string_to_metric_families(reply.read().decode())}


def test_an_address_that_is_taken_is_served_once_it_is_free(taken, caplog):
    port = taken.getsockname()[1]
    server = MetricsServer("127.0.0.1", port, Scrape(leader, Counts()), retry_seconds=0.05)
    server.start()
    try:
        assert wait_until(lambda: "choose another" in caplog.text, SECONDS, 0.02)
        assert not server.serving
        taken.close()
        assert wait_until(lambda: server.serving, SECONDS, 0.02)
        assert {"pondstack_leading", "pondstack_slices", "pondstack_mitigation_seconds"} <= answer(port)
    finally:
        server.stop()
    again = MetricsServer("127.0.0.1", port, Scrape(lambda: None, Counts()), retry_seconds=0.05)
    again.start()
    try:
        assert wait_until(lambda: again.serving, SECONDS, 0.02), "a restart gets the port at once"
        assert "pondstack_slices" not in answer(port)
    finally:
        again.stop()


def test_without_a_port_nothing_is_served():
    server = MetricsServer("127.0.0.1", 0, Scrape(lambda: None, Counts()))
    server.start()
    assert not server.serving
    server.stop()
