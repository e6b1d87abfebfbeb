"""A demonstration as steps: what holds is told, and what does not hold ends it and is kept."""

import json
from pathlib import Path

import pytest

from pondstack_rack.demo.consolidation import _load
from pondstack_rack.demo.consolidation_view import show
from pondstack_rack.demo.host_load import host_load
from pondstack_rack.demo.story import Broken, Story
from pondstack_rack.layout import Layout, Sizes


def test_a_story_whose_steps_hold(capsys: pytest.CaptureFixture[str]) -> None:
    ticks = iter([10.0, 11.0, 13.5])
    said: list[str] = []
    story = Story(said.append, lambda: next(ticks))
    assert not story.holds, "nothing was seen yet"
    with story.step("load falls") as step:
        step.check(True, "a plan empties it", "unused")
    story.figure("host asleep after", "3.0 s")
    assert (story.holds, said) == (True, ["load falls"])
    assert [(item.begun, item.seconds, item.told) for item in story.steps] == [(1.0, 2.5, ["a plan empties it"])]
    show(story)
    shown = capsys.readouterr().out
    assert "SYNTHETIC" in shown
    assert "EMULATED" in shown
    assert shown.index("host asleep after") > shown.index("a plan empties it"), "figures are last"
    assert shown.rstrip().endswith("1 steps: all steps hold")


def test_a_step_that_does_not_hold_ends_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(lambda _text: None)
    with pytest.raises(Broken, match="the host is asleep; seen: awake"), story.step("it sleeps") as step:
        step.check(False, "the host is asleep", "awake")
    assert not story.holds
    show(story)
    assert "a step does not hold" in capsys.readouterr().out


def test_hosts_play_loads_as_long_as_the_story_lasts(tmp_path: Path) -> None:
    layout = Layout(tmp_path, Sizes(), "secret")
    with host_load(layout) as load:
        load.play({"host1": [(0.0, 60.0), (10.0, 3.0)]})
        assert json.loads(layout.host_traces.read_text()) == {"host1": [[0.0, 60.0], [10.0, 3.0]]}
    assert not layout.host_traces.exists()


def test_the_load_by_which_a_plan_leaves_a_host() -> None:
    plan = {"left_out": {"host1": "its CPU load is 60.0 %, more than 25 %", "host2": "it is lending"}}
    assert [_load(plan, name) for name in ("host1", "host2", "host3")] == [60.0, None, None]
