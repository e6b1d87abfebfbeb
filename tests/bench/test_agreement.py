"""What a rack placed beside what the planner places: each planted difference gets its own reason."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.agreement import __main__, comparison
from bench.agreement.comparison import Why
from bench.agreement.log import BadLog, Host, Log, Look, Placement

HOSTS = (Host("h1", 64, 65_536, "p"), Host("h2", 64, 65_536, "p"))
HUGE, LARGE, SMALL = 16_384, 8192, 2048
"""Of the static 15 %, they get two slices, one and none."""


def look(at: float = 0.0, free: int = 8, buffer: int = 1, back: float = 0.0) -> Look:
    return Look(at, "p", 1024, free, buffer, back)


def server(number: int, host: str, pool_mib: int = 0, memory_mib: int = SMALL, **times: float | None) -> Placement:
    """A server of its own time: ten seconds after the one before it, seen after one, there for ever."""
    asked = 10.0 * number
    item = Placement(
        number, f"s{number}", 2, memory_mib, asked, asked + 1, None, None, host, pool_mib, "static", False, ""
    )
    return replace(item, **times)  # type: ignore[arg-type]


def log(*placements: Placement, looks: tuple[Look, ...] = (look(),)) -> Log:
    return Log("a test", 15, HOSTS, looks, placements)


def reasons(found: Log) -> list[Why]:
    return [verdict.why for verdict in comparison.compare(found)]


def test_servers_that_go_by_turns_go_so_in_both() -> None:
    assert reasons(log(server(0, "h1"), server(1, "h2"), server(2, "h1"), server(3, "h2"))) == [Why.SAME] * 4


def test_of_equal_hosts_the_log_tells_which_one_nova_takes() -> None:
    found = log(server(0, "h2"), server(1, "h1"), server(2, "h2"))
    assert comparison.order_of_equals(found) == ["h2", "h1"]
    assert reasons(found) == [Why.SAME] * 3


def test_nova_may_take_another_of_equals_than_before_and_what_follows_is_told() -> None:
    found = log(server(0, "h1"), server(1, "h2"), server(2, "h1"), server(3, "h2"), server(4, "h2"), server(5, "h1"))
    assert reasons(found) == [Why.SAME] * 4 + [Why.EQUAL, Why.EARLIER]


def test_a_host_that_is_still_building_is_avoided_by_nova_only() -> None:
    """It is larger: without the build it would be chosen again."""
    hosts = (Host("h1", 80, 81_920, "p"), HOSTS[1])
    found = replace(log(server(0, "h1", seen=15.0), server(1, "h2", asked=12.0, seen=16.0)), hosts=hosts)
    last = comparison.compare(found)[1]
    assert last.why is Why.BUILDING
    assert "#0 on h1 being built" in last.detail


def test_a_choice_that_no_state_explains_is_no_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    """The other host has less of everything, and nothing was under way."""
    found = log(server(0, "h1"), server(1, "h1"))
    assert reasons(found) == [Why.SAME, Why.UNKNOWN]
    assert comparison.report(found) == 1
    printed = capsys.readouterr().out
    assert "#1    rack h1 with 0 MiB of a pool, planner h2 with 0 MiB of a pool: UNEXPLAINED" in printed
    assert "hosts      1 of 2 the same" in printed


def test_a_split_that_the_pool_had_room_for_is_no_agreement() -> None:
    assert reasons(log(server(0, "h1", 0, LARGE))) == [Why.UNKNOWN]


def test_slices_on_their_way_back_explain_a_server_without_any() -> None:
    """Three slices, one kept back: the first server is gone when the second is placed, its slices not yet."""
    looks = (look(free=3, back=5.0),)
    first = server(0, "h1", 2048, HUGE, leaving=5.0, gone=6.0)
    found = comparison.compare(log(first, server(1, "h1", 0, HUGE), looks=looks))
    assert [item.why for item in found] == [Why.SAME, Why.RETURN]
    assert not found[1].same_split
    late = log(first, server(1, "h1", 0, HUGE, asked=100.0, seen=101.0), looks=looks)
    assert reasons(late)[1] is Why.UNKNOWN


def test_another_buffer_at_that_time_explains_a_server_without_slices() -> None:
    looks = (look(free=2), look(9.0, free=2, buffer=2))
    assert reasons(
        log(server(0, "h1", 1024, LARGE, leaving=2.0, gone=3.0), server(1, "h1", 0, LARGE), looks=looks)
    ) == [
        Why.SAME,
        Why.BUFFER,
    ]
    assert reasons(log(server(0, "h1", 0, LARGE), looks=(look(free=2), look(200.0, buffer=2)))) == [Why.UNKNOWN]


def test_a_departure_that_nova_had_not_counted_explains_a_host() -> None:
    """Without the first server, its host is the better one."""
    first = server(0, "h1", leaving=9.5, gone=11.0)
    found = log(first, server(1, "h2"), server(2, "h1", asked=30.0, seen=31.0))
    found = replace(found, hosts=(Host("h1", 65, 66_560, "p"), HOSTS[1]))
    assert reasons(found) == [Why.SAME, Why.LEAVING, Why.EARLIER]


def test_what_no_host_has_room_for_is_refused_by_both() -> None:
    refused = server(0, "", memory_mib=1 << 20, rejected=True, reason="No valid host was found.")
    assert reasons(log(refused, server(1, "h1"))) == [Why.SAME, Why.SAME]
    broken = server(0, "", rejected=False, reason="Build of instance aborted")
    assert reasons(log(broken, server(1, "h1")))[0] is Why.UNKNOWN


def test_a_log_is_read_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "replay.jsonl"
    found = log(server(0, "h1", leaving=4.0), server(1, "h2"))
    found.write(path)
    again = Log.read(path)
    assert (list(again.placements), list(again.looks), list(again.hosts)) == (
        list(found.placements),
        list(found.looks),
        list(found.hosts),
    )
    assert __main__.main([str(path)]) == 0
    assert "OK: each difference has its reason" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{}\n", '{"kind": "host", "name": "h1"}\n', "no JSON\n", '{"kind": "run"}\n'])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "replay.jsonl"
    path.write_text(text)
    with pytest.raises(BadLog, match=r"make replay LOG"):
        Log.read(path)
    assert __main__.main([str(path)]) == 2
    assert "agreement: " in capsys.readouterr().err
