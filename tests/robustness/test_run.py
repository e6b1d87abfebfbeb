"""A short run with real processes. Its seed is printed, and one command does the same again."""

from pathlib import Path

import pytest

from tests.fixtures.seeds import by_night, seed
from tests.robustness import network, report
from tests.robustness.faults import CUT_BROKER, CUT_LEADER
from tests.robustness.plan import LEAST_KILLS, Counts
from tests.robustness.run import Options, run

COUNTS = Counts(kills=by_night(5, 2), pauses=by_night(2, 1), others=1)


def test_a_plan_follows_from_its_seed() -> None:
    plans = [Options(seed, Counts(20, 5)).plan() for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    names = [step.fault.name for step in plans[0]]
    assert names.count("kill -9 leader") == 20
    assert names.count("SIGSTOP leader past its lease") == 5


def test_the_command_that_does_the_same_again_leaves_nothing_to_a_default() -> None:
    command = Options(7, Counts(5, 2, cuts=1, disks=0), "galera", 3).command
    assert command == ("make robustness KILLS=5 PAUSES=2 OTHERS=1 CUTS=1 DISKS=0 SEED=7 BROKERS=3 DATABASE=galera")
    assert Options(7, Counts(5, 2), rpc="shm").command.endswith(" DATABASE=mariadb RPC=shm")


@pytest.mark.parametrize("database", ["galera", "postgresql"])
def test_on_a_cluster_the_leader_dies_together_with_a_server(database: str) -> None:
    names = [step.fault.name for step in Options(1, Counts(20, 5), database).plan()]
    assert sum(name.startswith("kill -9 leader, and ") for name in names) == 20
    assert names.count("kill -9 leader") == LEAST_KILLS


def test_a_short_run_keeps_every_promise(tmp_path: Path) -> None:
    """Kills, pauses and restarts under load: nothing lost, nothing twice, no write from an old epoch."""
    options = Options(seed(20), COUNTS)
    print(f"the same again: {options.command}")
    result = run(options, tmp_path)
    table = report.rows(result.history, result.broken)
    print(report.text(result, table))
    report.save(result, table, tmp_path / "report")
    assert result.broken == []
    assert all(len(row.resumes) == row.runs for row in table)
    assert table[-1].acknowledged > 10 * table[-1].runs
    assert sum(loan.acknowledged is not None for loan in result.history.loans) > table[-1].runs


@pytest.mark.skipif(bool(network.missing()), reason=f"no network can be cut: {network.missing()}")
def test_a_leader_cut_off_from_the_broker_alone_is_followed(tmp_path: Path) -> None:
    """Its database answers, so that it could renew its lease for ever; writes go on with the other controller."""
    options = Options(seed(21), Counts(kills=0, pauses=0, others=0, cuts=1))
    print(f"the same again: {options.command}")
    result = run(options, tmp_path)
    table = report.rows(result.history, result.broken)
    print(report.text(result, table))
    report.save(result, table, tmp_path / "report")
    assert result.broken == []
    assert {fault.name for fault in result.history.faults} == {CUT_LEADER.name, CUT_BROKER.name}
    assert all(row.resumes for row in table)
