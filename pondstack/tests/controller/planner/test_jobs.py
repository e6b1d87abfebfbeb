"""Jobs of the planner in a leader: queued, begun one after the other, cancelled, and begun again by the next leader."""

import json
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest

from pondstack.clients.compute_room import ComputeRoom
from pondstack.clients.placement import Inventory
from pondstack.controller.gate import Gate
from pondstack.controller.planner import jobs as module
from pondstack.controller.planner import past as past_module
from pondstack.controller.planner.jobs import PlannerJobs
from pondstack.controller.planner.past import Past
from pondstack.db.store import SQL, planner_jobs
from pondstack.domain.errors import BadRequest, Conflict, NotFound, NotLeader, Unavailable
from pondstack.domain.history import InstanceFacts
from pondstack.domain.planner_job import JobState, PlannerReport
from pondstack.ledger.ledger import Ledger
from pondstack.planner.job import process, worker
from tests.fixtures.ledgers import lead

S = JobState
ASKED = {"source": "generated", "servers": 10}
OUTCOME = process.Outcome("do not buy", PlannerReport({"version": 1}, "<!doctype html>"))
NOW = datetime(2026, 11, 27, tzinfo=UTC)


def group(**changes):
    values = {"enabled": True, "seconds": 60, "memory_mib": 4096, "most_parts": 4000, "most_waiting": 3, "tries": 2}
    return SimpleNamespace(**{**values, "keep_seconds": 3600.0, **changes})


@pytest.fixture
def made(database):
    """Makes the jobs of a new leader, whose replay is `replay`."""

    def make(name="controller-1", **changes):
        ledger = Ledger(database, lead(database, name), store=SQL)
        conf = SimpleNamespace(
            planner=group(**changes),
            ha=SimpleNamespace(lease_seconds=10.0),
            prediction=SimpleNamespace(min_coverage=0.5),
        )
        found = SimpleNamespace(conf=conf, database=database, name=name, servers=None, placement=None, reader=None)
        return PlannerJobs(found, ledger, Gate(lambda: None))

    return make


@pytest.fixture
def replayed(monkeypatch):
    """The replays that were begun, each with its order; what `during` does then, and what it returns."""
    found = SimpleNamespace(orders=[], during=lambda _goes_on: OUTCOME)

    def replay(folder, _limits, goes_on, _started, _clock):
        found.orders.append(json.loads((folder / worker.ORDER).read_text()))
        return found.during(goes_on)

    monkeypatch.setattr(process, "replay", replay)
    return found


def ask(jobs, operation=None, **order):
    return jobs.create(operation or str(uuid4()), ASKED | order, "admin", "ops")


def job(database, uuid):
    return database.read(lambda session: planner_jobs.record(session, uuid))


def test_one_is_replayed_and_has_a_report(database, made, replayed):
    jobs = made()
    uuid = ask(jobs, "op", settings={"seeds": [1]})
    assert ask(jobs, "op", settings={"seeds": [1]}) == uuid
    assert job(database, uuid).state is S.QUEUED

    def during(goes_on):
        assert goes_on(0, 9)
        assert goes_on(4, 9)
        assert goes_on(4, 9)
        found = job(database, uuid)
        assert (found.state, found.done, found.total, found.controller) == (S.RUNNING, 4, 9, "controller-1")
        return OUTCOME

    replayed.during = during
    jobs.run()
    assert replayed.orders[0]["settings"] == {"seeds": [1]}
    found = job(database, uuid)
    assert (found.state, found.done, found.summary, found.user_id) == (S.ENDED, 9, "do not buy", "admin")
    assert found.ended_at >= found.begun_at >= found.created_at
    assert database.read(lambda session: planner_jobs.report(session, uuid)) == OUTCOME.report
    jobs.run()
    assert len(replayed.orders) == 1


def test_all_that_wait_come_one_after_the_other(database, made, replayed):
    jobs = made()
    wanted = [ask(jobs, servers=number) for number in (3, 4)]
    jobs.run()
    assert sorted(order["servers"] for order in replayed.orders) == [3, 4]
    assert {job(database, uuid).state for uuid in wanted} == {S.ENDED}


@pytest.mark.parametrize(
    "error", [BadRequest("one socket is too few"), Unavailable("Nova is down"), OSError(28, "full")]
)
def test_why_one_failed_is_told_and_the_next_one_goes_on(database, made, replayed, error):
    jobs = made()
    first = ask(jobs)

    def during(_goes_on):
        if len(replayed.orders) == 1:
            raise error
        return OUTCOME

    replayed.during = during
    jobs.run()
    found = job(database, first)
    assert found.state is S.FAILED
    assert str(error).rpartition("] ")[2] in found.reason
    second = ask(jobs)
    jobs.run()
    assert job(database, second).state is S.ENDED


def test_one_is_cancelled_while_it_runs(database, made, replayed):
    jobs = made()
    uuid = ask(jobs)

    def during(goes_on):
        assert goes_on(1, 9)
        jobs.cancel(str(uuid4()), uuid)
        assert not goes_on(1, 9), "although nothing is written"
        assert not goes_on(2, 9)

    replayed.during = during
    jobs.run()
    found = job(database, uuid)
    assert (found.state, found.done, found.reason) == (S.CANCELLED, 1, "cancelled by an operator")


def test_what_ends_after_its_cancel_has_no_report(database, made, replayed):
    jobs = made()
    uuid = ask(jobs)

    def during(_goes_on):
        jobs.cancel(str(uuid4()), uuid)
        jobs.remove(str(uuid4()), uuid)
        return OUTCOME

    replayed.during = during
    jobs.run()
    with pytest.raises(NotFound):
        job(database, uuid)
    with pytest.raises(NotFound):
        database.read(lambda session: planner_jobs.report(session, uuid))


def test_one_that_waits_is_cancelled_and_only_then_removed(made):
    jobs = made()
    uuid = ask(jobs)
    with pytest.raises(Conflict, match="is queued; cancel it first"):
        jobs.remove(str(uuid4()), uuid)
    jobs.cancel("op", uuid)
    jobs.cancel("op", uuid)
    with pytest.raises(Conflict, match="is cancelled already"):
        jobs.cancel(str(uuid4()), uuid)
    jobs.remove(str(uuid4()), uuid)
    for change in (jobs.cancel, jobs.remove):
        with pytest.raises(NotFound):
            change(str(uuid4()), uuid)


def test_the_next_leader_begins_it_again_and_the_one_after_gives_up(database, made, replayed):
    def dies(_goes_on):
        raise SystemExit

    first = made()
    uuid = ask(first)
    waits = ask(first, servers=99)
    replayed.during = dies
    with pytest.raises(SystemExit):
        first.run()
    assert job(database, uuid).state is S.RUNNING
    second = made("controller-2")
    with pytest.raises(SystemExit):
        second.run()
    found = job(database, uuid)
    assert (found.state, found.tries, found.controller) == (S.RUNNING, 2, "controller-2")
    assert found.reason == "controller controller-1 ended, or led no longer, while it ran, so it was begun again"
    replayed.during = lambda _goes_on: OUTCOME
    made("controller-3").run()
    found = job(database, uuid)
    assert found.state is S.FAILED
    ended = "controller controller-2 ended, or led no longer, while it ran, for the 2. time ([planner] tries)"
    assert ended in found.reason
    assert job(database, waits).state is S.ENDED


def test_a_former_leader_writes_nothing(database, made, replayed):
    former = made()
    uuid = ask(former)

    def during(goes_on):
        made("controller-2")
        goes_on(1, 9)

    replayed.during = during
    with pytest.raises(NotLeader):
        former.run()
    assert job(database, uuid).done == 0


def test_a_leader_that_ends_kills_its_child_and_leaves_the_job_to_the_next(database, made, replayed):
    jobs, killed = made(), []
    uuid = ask(jobs)

    def during(goes_on):
        jobs._child.started(SimpleNamespace(kill=lambda: killed.append(True)))
        jobs.stop()
        assert not goes_on(0, 0)
        raise Unavailable("its process ended with -9")

    replayed.during = during
    jobs.run()
    assert killed
    assert job(database, uuid).state is S.RUNNING


@pytest.mark.parametrize(
    ("changes", "order", "error", "told"),
    [
        ({"enabled": False}, {}, Conflict, "is off"),
        ({"most_parts": 100}, {}, BadRequest, r"would have \d+ parts, more than 100 \(\[planner\] most_parts\)"),
        ({"most_waiting": 0}, {}, Conflict, r"0 planner jobs wait or run already \(\[planner\] most_waiting\)"),
        ({}, {"source": "cloud", "servers": 3}, BadRequest, "goes with the source generated"),
    ],
)
def test_what_is_refused_changes_nothing(database, made, changes, order, error, told):
    with pytest.raises(error, match=told):
        ask(made(**changes), **order)
    assert database.read(planner_jobs.unended) == []


def test_a_cloud_that_cannot_be_asked_is_refused(made):
    with pytest.raises(Conflict, match=r"\[placement\] enabled of the controllers is off"):
        made().create("op", {"source": "cloud"}, "", "")


def test_a_controller_without_the_extra_is_refused(made, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "numba" else name)
    with pytest.raises(Conflict, match="controller controller-1 lacks numba: install pondstack there"):
        ask(made())


@pytest.mark.usefixtures("replayed")
def test_old_ones_are_forgotten(database, made):
    jobs = made()
    old, waits = ask(jobs), None
    jobs.run()
    waits = ask(jobs)
    database.write(lambda session: planner_jobs.prune(session, 3600.0))
    assert job(database, old)
    database.write(lambda session: planner_jobs.prune(session, -1.0))
    assert [item.uuid for item in database.read(planner_jobs.records)] == [waits]
    jobs.tidy()


@pytest.mark.usefixtures("replayed")
def test_a_report_that_no_row_takes_fails_the_job(database, made, monkeypatch):
    monkeypatch.setattr(planner_jobs, "MOST_BYTES", 10)
    jobs = made()
    uuid = ask(jobs)
    jobs.run()
    found = job(database, uuid)
    assert (found.state, found.summary) == (S.FAILED, "")
    assert "is larger than 10 bytes" in found.reason


def facts(uuid, deleted=None):
    return InstanceFacts(uuid, "blue", "m1", 4096, 2, "", "", "", "", NOW - timedelta(days=1), NOW, deleted)


class Cloud:
    """Nova, Placement and the history of a cloud of two hosts."""

    def __init__(self):
        self.asked = []

    def instances(self, since):
        self.asked.append(since)
        yield [facts("a"), facts("b")] if since is None else [facts("a", NOW)]

    def with_trait(self, _trait):
        return {"h1": "one", "h2": "two"}

    def inventories(self, _uuid):
        return {"VCPU": Inventory(8, 0, 1, 1, 8, 2.0), "MEMORY_MB": Inventory(4096, 96, 1, 1, 4096)}

    def usages(self, _uuid):
        return {"VCPU": 3, "MEMORY_MB": 1024}

    def lifetimes(self, chosen):
        assert (chosen.until - chosen.since, chosen.min_coverage) == (timedelta(days=7), 0.5)
        known = {"instance_uuid": "b", "memory_mib": 4096}
        return [
            SimpleNamespace(**known, untouched_mib=1024, source="synthetic"),
            SimpleNamespace(**known | {"instance_uuid": "a"}, untouched_mib=None, source="measured"),
        ]


def test_a_clouds_past_is_written_down(tmp_path):
    cloud = Cloud()
    Past(cloud, cloud, cloud, 0.5).write(tmp_path, NOW, 7.0)
    found = [json.loads(line) for line in (tmp_path / worker.INSTANCES).read_text().splitlines()]
    assert [(item["uuid"], item["ended"], item["untouched_percent"]) for item in found] == [
        ("a", None, None),
        ("b", None, 25.0),
        ("a", NOW.isoformat(), None),
    ]
    assert cloud.asked == [None, NOW - timedelta(days=7)]
    told = json.loads((tmp_path / worker.WINDOW).read_text())
    assert (told["hosts"], told["synthetic"]) == ({"number": 2, "vcpus": 32, "memory_mib": 8000}, 1)
    assert ComputeRoom.of(cloud).vcpus == 32


def test_a_past_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(past_module, "MOST_INSTANCES", 2)
    cloud = Cloud()
    with pytest.raises(BadRequest, match="more than 2 instances are too many: give a shorter --window-days"):
        Past(cloud, cloud, cloud, 0.5).write(tmp_path, NOW, 7.0)


@pytest.mark.usefixtures("replayed")
def test_its_thread_has_what_is_asked_for_replayed(database, made):
    jobs = made()
    jobs.start()
    uuid = ask(jobs)
    deadline = time.monotonic() + 60
    while job(database, uuid).state is not S.ENDED:
        assert time.monotonic() < deadline
    jobs.stop()


def test_a_database_that_is_away_for_a_while_stops_no_replay(database, made, replayed, monkeypatch):
    jobs = made()
    uuid = ask(jobs)

    def away(*_arguments):
        raise Unavailable("the database does not answer")

    def during(goes_on):
        with monkeypatch.context() as patch:
            patch.setattr(planner_jobs, "progress", away)
            patch.setattr(planner_jobs, "record", away)
            assert goes_on(0, 0)
            assert goes_on(1, 9)
        assert goes_on(1, 9)
        return OUTCOME

    replayed.during = during
    jobs.run()
    assert job(database, uuid).done == 9
