"""What a rack placed beside what the planner places: each planted difference gets its own reason."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.agreement import __main__, comparison, scheduler
from bench.agreement.decision import CPU, IO_OPS, POND, RAM, Decision, decisions
from bench.agreement.log import BadLog, Host, Log, Look, Placement
from bench.agreement.reasons import Why
from pondstack_rack.layout import RackError

HOSTS = (Host("h1", 64, 65_536, "p"), Host("h2", 64, 65_536, "p"))
HUGE, LARGE, SMALL = 16_384, 8192, 2048
"""Of the static 15 %, they get two slices, one and none."""
SAME = (Why.SAME,)


def look(at: float = 0.0, free: int = 8, buffer: int = 1, returning: int = 0) -> Look:
    return Look(at, "p", 1024, free, returning, buffer, 0.0)


def server(number: int, host: str, pool_mib: int = 0, memory_mib: int = SMALL, **times: float | None) -> Placement:
    """A server of its own time: ten seconds after the one before it, seen after one, there for ever."""
    asked = 10.0 * number
    item = Placement(
        number, f"s{number}", 2, memory_mib, asked, asked + 1, None, None, host, pool_mib, "static", False, ""
    )
    return replace(item, **times)  # type: ignore[arg-type]


def decided(number: int, host: str, order: str = "h1 h2", **raw: tuple[float, float]) -> Decision:
    """How Nova weighed two hosts, in that order, for a server; each weigher's raw weights, its own scores of them."""
    names = {"cpu": CPU, "ram": RAM, "pond": POND, "io_ops": IO_OPS}
    found = {names.get(name, name): pair for name, pair in raw.items()}
    scores = {name: [value / max(pair, default=1) for value in pair] for name, pair in found.items() if any(pair)}
    if IO_OPS in scores:
        scores[IO_OPS] = [-value for value in scores[IO_OPS]]
    return Decision(f"s{number}", host, order.split(), found, scores)


def log(*placements: Placement, looks: tuple[Look, ...] = (look(),), told: tuple[Decision, ...] = ()) -> Log:
    return Log("a test", 15, HOSTS, looks, placements, {item.server: item for item in told})


def whys(found: Log) -> list[tuple[Why, ...]]:
    return [verdict.why for verdict in comparison.compare(found)]


EVEN = {"cpu": (64.0, 62.0), "ram": (65_536.0, 63_488.0), "pond": (0.0, 0.0)}
"""As Nova has two hosts, the second of which has a small server; so of the first one."""
SWAPPED = {"cpu": (62.0, 64.0), "ram": (63_488.0, 65_536.0), "pond": (0.0, 0.0)}
EMPTY = {"cpu": (64.0, 64.0), "ram": (65_536.0, 65_536.0), "pond": (0.0, 0.0)}


def test_servers_that_go_by_turns_go_so_in_both() -> None:
    assert whys(log(server(0, "h1"), server(1, "h2"), server(2, "h1"), server(3, "h2"))) == [SAME] * 4


def test_of_equal_hosts_nova_tells_which_one_it_takes() -> None:
    told = (decided(0, "h2", "h2 h1", **EMPTY),)
    found = log(server(0, "h2"), server(1, "h1"), server(2, "h2"), told=told)
    assert comparison.order_of_equals(found) == ["h2", "h1"]
    assert whys(found) == [SAME] * 3


def test_nova_may_have_its_hosts_in_another_order_and_what_follows_is_told() -> None:
    told = (decided(0, "h1", **EMPTY), decided(2, "h2", "h2 h1", cpu=(62, 62), ram=(63_488, 63_488), pond=(0, 0)))
    found = log(server(0, "h1"), server(1, "h2"), server(2, "h2"), server(3, "h1"), told=told)
    assert whys(found) == [SAME, SAME, (Why.EQUAL,), (Why.EARLIER,)]


def test_builds_that_nova_counts_explain_a_host_only_if_its_scores_say_so() -> None:
    """The first host is larger: without a build it would be chosen again."""
    hosts = (Host("h1", 80, 81_920, "p"), HOSTS[1])
    counts = {"cpu": (78.0, 64.0), "ram": (79_872.0, 65_536.0), "pond": (0.0, 0.0)}
    servers = (server(0, "h1"), server(1, "h2"))
    building = replace(log(*servers, told=(decided(1, "h2", **counts, io_ops=(1.0, 0.0)),)), hosts=hosts)
    last = comparison.compare(building)[1]
    assert last.why == (Why.BUILDS,)
    assert "1 on h1" in str(last.reasons[0])
    calm = replace(log(*servers, told=(decided(1, "h2", **counts, io_ops=(0.0, 0.0)),)), hosts=hosts)
    assert whys(calm)[1] == (Why.UNKNOWN,)


def test_builds_explain_nothing_where_nobody_was_built_lately() -> None:
    hosts = (Host("h1", 80, 81_920, "p"), HOSTS[1])
    counts = {"cpu": (78.0, 64.0), "ram": (79_872.0, 65_536.0), "pond": (0.0, 0.0)}
    for late, builds in ((9, 1.0), (1, 2.0)):
        told = (decided(late, "h2", **counts, io_ops=(builds, 0.0)),)
        last = comparison.compare(replace(log(server(0, "h1"), server(late, "h2"), told=told), hosts=hosts))[1]
        assert last.why == (Why.UNKNOWN,)
        assert "more builds than there were" in str(last.reasons[0])


def test_a_choice_that_nova_tells_nothing_of_is_no_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    """The other host has less of everything."""
    found = log(server(0, "h1"), server(1, "h1"))
    assert whys(found) == [SAME, (Why.UNKNOWN,)]
    assert comparison.report(found) == 1
    printed = capsys.readouterr().out
    assert "#1    rack h1 with 0 MiB of a pool, planner h2 with 0 MiB of a pool: UNEXPLAINED" in printed
    assert "hosts      1 of 2 the same" in printed


def test_a_server_that_nova_had_not_counted_explains_a_host_and_no_other_difference_does() -> None:
    """The first one is still on its way when the second is decided on; later it is long there."""
    servers = (server(0, "h1", seen=15.0), server(1, "h1"))
    assert whys(log(*servers, told=(decided(1, "h1", **EMPTY),)))[1] == (Why.MOTION,)
    late = (server(0, "h1"), server(1, "h1"))
    assert whys(log(*late, told=(decided(1, "h1", **EMPTY),)))[1] == (Why.LATE,)
    odd = decided(1, "h1", cpu=(64.0, 64.0), ram=(70_000.0, 65_536.0), pond=(0.0, 0.0))
    assert whys(log(*late, told=(odd,)))[1] == (Why.UNKNOWN,)


def test_a_view_from_before_several_came_explains_a_host_and_no_sum_of_others_does() -> None:
    """Five came to the first host since: only without all of them it is as Nova had it."""
    came = [server(number, "h1", memory_mib=SMALL + number) for number in range(5)]
    assert whys(log(*came, server(5, "h1"), told=(decided(5, "h1", **EMPTY),)))[5] == (Why.LATE,)
    odd = decided(5, "h1", cpu=(64.0, 64.0), ram=(65_537.0, 65_536.0), pond=(0.0, 0.0))
    reason = comparison.compare(log(*came, server(5, "h1"), told=(odd,)))[5].reasons[0]
    assert (reason.why, reason.detail) == (Why.UNKNOWN, "Nova had +10 vCPUs and +10251 MiB free on h1")


def test_a_departure_that_nova_had_not_counted_explains_a_host() -> None:
    first = server(0, "h1", leaving=9.5, gone=11.0)
    found = log(first, server(1, "h2"), told=(decided(1, "h2", **SWAPPED),))
    assert whys(found) == [SAME, (Why.MOTION,)]
    assert "#0 still counted" in str(comparison.compare(found)[1].reasons[0])


def test_another_weigher_of_novas_is_named() -> None:
    found = log(server(0, "h1"), told=(decided(0, "h1", **EMPTY),))
    assert whys(found) == [SAME]
    failed = decided(0, "h2", **EMPTY, BuildFailureWeigher=(0.0, 5.0))
    reason = comparison.compare(log(server(0, "h2"), told=(failed,)))[0].reasons[0]
    assert (reason.why, reason.detail) == (Why.OTHER, "BuildFailureWeigher")


def test_a_decision_whose_own_scores_choose_another_host_explains_nothing() -> None:
    wrong = decided(1, "h1", **SWAPPED, io_ops=(1.0, 0.0))
    last = comparison.compare(log(server(0, "h1"), server(1, "h1"), told=(wrong,)))[1]
    assert last.why == (Why.UNKNOWN,)
    assert "by its own scores Nova's choice was h2" in str(last.reasons[0])


def test_a_split_that_the_pool_had_room_for_is_no_agreement() -> None:
    assert whys(log(server(0, "h1", 0, LARGE))) == [(Why.UNKNOWN,)]


def test_slices_seen_on_their_way_back_explain_a_server_without_any() -> None:
    """Three slices, one kept back: the first server is gone when the second is placed, its slices not yet."""
    first, second = server(0, "h1", 2048, HUGE, leaving=5.0, gone=6.0), server(1, "h1", 0, HUGE)
    found = comparison.compare(log(first, second, looks=(look(free=3), look(10.0, free=1, returning=2))))
    assert [item.why for item in found] == [SAME, (Why.POOL,)]
    assert not found[1].same_split
    assert whys(log(first, second, looks=(look(free=3), look(10.0, free=3))))[1] == (Why.UNKNOWN,)


def test_another_buffer_at_that_time_explains_a_server_without_slices() -> None:
    looks = (look(free=2), look(9.0, free=2, buffer=2))
    first = server(0, "h1", 1024, LARGE, leaving=2.0, gone=3.0)
    assert whys(log(first, server(1, "h1", 0, LARGE), looks=looks)) == [SAME, (Why.POOL,)]
    assert whys(log(server(0, "h1", 0, LARGE), looks=(look(free=2), look(200.0, buffer=2)))) == [(Why.UNKNOWN,)]


REQUEST = "2026-11-27 11:31:57.923 24468 DEBUG {} [None req-{} 6ecf 9192 - - default default] {}"
WEIGHED = (
    "CPUWeigher: raw weights {('h2', 'h2'): 64.0, ('h1', 'h1'): 62.0} get_weighed_objects /nova/weights.py:136",
    "CPUWeigher: score (multiplier * weight) {('h2', 'h2'): '1.0 * 1.0', ('h1', 'h1'): '1.0 * 0.5'} get_weighed",
    "IoOpsWeigher: raw weights {('h2', 'h2'): 1, ('h1', 'h1'): 0} get_weighed_objects /nova/weights.py:136",
    "IoOpsWeigher: score (multiplier * weight) {('h2', 'h2'): '-1.0 * 1.0', ('h1', 'h1'): '-1.0 * 0.0'} get_weighed",
)


def told_in(request: str, *texts: str) -> list[str]:
    return [REQUEST.format("nova.weights", request, text) for text in texts]


def selected(server: str, host: str) -> str:
    return (
        f"[instance: {server}] Selected host: ({host}, {host}) ram: 4000000MB disk: 0MB io_ops: 0 instances: 0 _consume"
    )


def test_novas_log_tells_each_decision_though_requests_are_mixed() -> None:
    first, second = told_in("a1", *WEIGHED, selected("5a", "h1")), told_in("b2", *WEIGHED, selected("6b", "h2"))
    lines = [line for pair in zip(first, second, strict=True) for line in pair]
    found = decisions(["no request at all", *lines])
    assert found["5a"] == Decision(
        "5a", "h1", ["h2", "h1"], {CPU: [64.0, 62.0], IO_OPS: [1.0, 0.0]}, {CPU: [1.0, 0.5], IO_OPS: [-1.0, -0.0]}
    )
    assert (found["5a"].first, found["6b"].host) == ("h1", "h2")


def test_the_last_time_that_nova_weighed_hosts_counts_and_one_host_alone_is_not_weighed() -> None:
    alternates = WEIGHED[0].replace("64.0", "1.0")
    again = told_in("a1", *WEIGHED, selected("5a", "h2"), alternates, *WEIGHED, selected("5a", "h1"))
    assert decisions(again)["5a"].raw[CPU] == [64.0, 62.0]
    assert decisions(told_in("a1", selected("5a", "h1"))) == {"5a": Decision("5a", "h1", ["h1"], {}, {})}


def test_a_configuration_that_tells_weights_is_the_racks_otherwise() -> None:
    text = "[DEFAULT]\nuse_stderr = true\n[filter_scheduler]\nweight_classes = x\n"
    telling = scheduler.telling(text, None)
    assert telling.count("\n") == text.count("\n") + 1
    assert "nova.weights=DEBUG" in telling.splitlines()[1]
    assert "[filter_scheduler]\nio_ops_weight_multiplier = 0.0\n" in scheduler.telling(text, 0.0)


def test_no_vm_is_moved_for_its_pool_memory_while_a_replay_is_compared() -> None:
    text = "[controller]\nmode = x\n[qos]\n# A word.\nmode = on\ninterval_seconds = 5\n[sleep]\nmode = on\n"
    assert scheduler.unmoved(text) == text.replace("A word.\nmode = on", "A word.\nmode = dry_run")
    with pytest.raises(RackError, match="has no mode in"):
        scheduler.unmoved("[qos]\ninterval_seconds = 5\n[sleep]\nmode = on\n")


def test_what_no_host_has_room_for_is_refused_by_both() -> None:
    refused = server(0, "", memory_mib=1 << 20, rejected=True, reason="No valid host was found.")
    assert whys(log(refused, server(1, "h1"))) == [SAME, SAME]
    broken = server(0, "", rejected=False, reason="Build of instance aborted")
    assert whys(log(broken, server(1, "h1")))[0] == (Why.UNKNOWN,)


def test_a_log_is_read_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "replay.jsonl"
    found = log(server(0, "h1", leaving=40.0), server(1, "h2"), told=(decided(0, "h1", **EMPTY),))
    found.write(path)
    again = Log.read(path)
    assert (list(again.placements), list(again.looks), list(again.hosts)) == (
        list(found.placements),
        list(found.looks),
        list(found.hosts),
    )
    assert list(again.decisions["s0"].hosts) == ["h1", "h2"]
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


def test_a_replay_that_was_killed_leaves_the_configuration_to_the_next(tmp_path, monkeypatch):
    nova, pondstack, log = (tmp_path / name for name in ("nova.conf", "pondstack.conf", "nova-scheduler.log"))
    before = {nova: "[DEFAULT]\n", pondstack: "[qos]\nmode = on\n"}
    for path, text in before.items():
        path.write_text(text)
    log.touch()
    restarts = []

    def service(name: str) -> SimpleNamespace:
        path = nova if name == "nova-scheduler" else pondstack
        return SimpleNamespace(restart=lambda: restarts.append((name, path.read_text())))

    services = dict.fromkeys(("nova-scheduler", "pondstack-controller1", "pondstack-agent-h1"))
    rack = SimpleNamespace(layout=SimpleNamespace(etc=tmp_path, log=tmp_path), service=service, services=services)
    monkeypatch.setattr(scheduler.Rack, "open", lambda _folder: rack)
    killed = scheduler.told(tmp_path, None)
    killed.__enter__()
    for path, text in before.items():
        assert path.read_text() != text
        assert scheduler.kept(path).read_text() == text
    with scheduler.told(tmp_path, None):
        assert [scheduler.kept(path).read_text() for path in before] == list(before.values())
    assert [path.read_text() for path in before] == list(before.values())
    assert sorted(item.name for item in tmp_path.iterdir()) == ["nova-scheduler.log", "nova.conf", "pondstack.conf"]
    begun = [
        ("nova-scheduler", scheduler.telling(before[nova], None)),
        ("pondstack-controller1", "[qos]\nmode = dry_run\n"),
    ]
    assert restarts == [*begun, *begun, ("pondstack-controller1", before[pondstack]), ("nova-scheduler", before[nova])]
