"""The benchmark of plans: the same cloud for a seed, no plan beyond Placement, and no peer that is made up."""

from dataclasses import replace

import pytest

from bench import plan
from pondstack.consolidation.decision.settings import Settings
from pondstack.domain.plan import ActionKind


def test_a_cloud_is_that_of_its_seed():
    assert plan.make_cloud(5, 7) == plan.make_cloud(5, 7)
    assert plan.make_cloud(5, 7) != plan.make_cloud(5, 8)


def test_a_setting_of_each_way_exists():
    for way in plan.WAYS.values():
        assert set(way) <= Settings.names()


def test_a_plan_beyond_placement_is_noticed():
    cloud = plan.make_cloud(20, 1)
    _, found = plan.timed(cloud.snapshot, {}, 1)
    assert found.effect.migrations > 0
    assert plan.exceeded(cloud.snapshot, found) == []
    [target, *_] = [item.destination for item in found.actions if item.kind is ActionKind.MIGRATE]
    piled = [replace(item, destination=target) if item.destination else item for item in found.actions]
    assert plan.exceeded(cloud.snapshot, replace(found, actions=tuple(piled * 5))) == [target]


@pytest.mark.parametrize(
    ("theirs", "status", "said"),
    [
        (None, 1, "not compared with Watcher"),
        (10.0, 0, "all targets hold"),
        (1e-9, 1, "times as fast as Watcher, not 20"),
    ],
)
def test_the_targets(monkeypatch, capsys, theirs, status, said):
    asked = []

    def watcher_seconds(cloud, _limit):
        asked.append(len(cloud.snapshot.hosts))
        return {"seconds": theirs, "migrations": 1, "emptied": 1} if theirs and len(asked) == 1 else None

    monkeypatch.setattr(plan, "watcher_seconds", watcher_seconds)
    assert plan.main(["--hosts", "20", "--rounds", "1"]) == status
    assert said in capsys.readouterr().out
    assert asked == ([plan.FIRST_HOSTS, 2 * plan.FIRST_HOSTS] if theirs else [plan.FIRST_HOSTS])
