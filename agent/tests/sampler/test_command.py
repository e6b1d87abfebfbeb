"""pondstack-sample as an operator meets it."""

from pathlib import Path

import pytest

from pondstack.domain.errors import HostUnusable
from pondstack.prediction import samples
from pondstack_agent.sampler import command, numa, thread_counters
from pondstack_agent.telemetry.events import EventSet, Ratio
from pondstack_agent.telemetry.perf import Event
from pondstack_agent.telemetry.processors import AMD, INTEL, Processor, raw

NO_KIND = 0x7FFFFFFF


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    """Two nodes with CPUs, a third without, as the kernel tells them."""
    (tmp_path / "has_memory").write_text("0-2\n")
    for node, cpus in ((0, "0-3,8"), (1, "4-7"), (2, "")):
        folder = tmp_path / f"node{node}"
        folder.mkdir()
        (folder / "cpulist").write_text(f"{cpus}\n")
        (folder / "meminfo").write_text(f"Node {node} MemTotal:  8192000 kB\nNode {node} MemFree:   2048000 kB\n")
    return tmp_path


def test_samples_are_made_up_where_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "samples.jsonl"
    words = ["--synthetic", "--workloads", "30", "--runs", "2", "--output", str(output)]
    assert command.main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("SYNTHETIC: 60 of 60 runs of 30 workloads")
    assert printed[-1] == f"60 runs: {output}"
    assert {item.source for item in samples.read(output)} == {"synthetic"}
    assert command.main(words) == 1
    assert "exists" in capsys.readouterr().err


def test_a_machine_without_two_nodes_is_told(nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--pool-node", "999", "--output", str(tmp_path / "s")]) == 1
    told = capsys.readouterr().err
    assert "nodes 0 and 999 are wanted, and this machine has memory on" in told
    assert "--synthetic" in told
    assert not (tmp_path / "s").exists()
    with pytest.raises(HostUnusable, match="nodes 1 and 1 are wanted"):
        command.machine(1, 1, nodes)
    with pytest.raises(HostUnusable, match="node 2 has no CPUs"):
        command.machine(2, 1, nodes)


@pytest.mark.parametrize(
    "words",
    [
        ["--kernels", "sort,nonsense", "--synthetic"],
        ["--sizes", "1,x", "--synthetic"],
        ["--runs", "0", "--synthetic"],
        [],
        ["--synthetic", "--pool-node", "1"],
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        command.parse([*words, "--output", str(tmp_path / "s")])
    assert ended.value.code == 2
    assert not (tmp_path / "s").exists()


def test_nodes_are_those_of_the_kernel(nodes: Path) -> None:
    assert (numa.nodes(nodes), numa.cpus(0, nodes), numa.cpus(2, nodes)) == ([0, 1, 2], [0, 1, 2, 3, 8], [])
    assert numa.free_mib(1, nodes) == 2000


def test_accesses_to_the_pool_are_told_where_events_can_tell_them(nodes: Path) -> None:
    assert thread_counters.share_events(Processor(INTEL, 6, 143), 1, nodes)[0] == (raw(0xD3, 1), raw(0xD3, 2))
    assert thread_counters.share_events(Processor(AMD, 25, 17), 1, nodes)[0] == (raw(0x44, 8), raw(0x44, 0x40))
    assert thread_counters.share_events(Processor(INTEL, 6, 143), 2, nodes) == ((), thread_counters.NO_CPUS)
    assert thread_counters.share_events(Processor(), 1, nodes) == ((), thread_counters.NO_EVENTS)


def test_what_is_not_counted_is_told_with_its_reason_and_the_work_is_done() -> None:
    """Of a kind of events that no kernel has, as on a machine without counters."""
    done = []
    absent = EventSet((Event(NO_KIND, 0), Event(NO_KIND, 1)), {"a": Ratio(0, 1)}, missing={"b": "why"})  # type: ignore[dict-item]
    found = thread_counters.counted([absent], lambda: done.append(1))
    assert (found.figures, len(done)) == ({}, 1)
    assert set(found.missing) == {"a", "b"}
    assert all(found.missing.values())
    part, reason = thread_counters.share((Event(NO_KIND, 0), Event(NO_KIND, 1)), lambda: done.append(1))
    assert (part, bool(reason), len(done)) == (None, True, 2)


def test_the_work_of_this_thread_is_counted() -> None:
    """Page faults, which every kernel counts."""
    software, faults, minor = 1, 2, 5
    events = EventSet((Event(software, faults), Event(software, minor)), {"a": Ratio(1, 0, 100.0)})  # type: ignore[dict-item]
    found = thread_counters.counted([events], lambda: bytearray(64 << 20))
    if found.missing:
        pytest.skip(f"perf_event_open: {found.missing}")
    assert found.figures == {"a": 100.0}


def test_memory_is_bound_by_the_kernel() -> None:
    """On the one node that every machine has."""
    node = numa.nodes()[0]
    try:
        arena = command.Arena(1 << 20, 100.0, node, node)
    except HostUnusable as error:
        pytest.skip(str(error))
    arena.array(1 << 20, "uint8")[:] = 1
    arena.check()
