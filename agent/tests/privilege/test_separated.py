"""What an agent that is root no more can still do, by its privileged processes, and what they refuse."""

from pathlib import Path

import pytest

from pondstack.devices.mappings import file_id

from .conftest import UUID, Separated

MIB = 1 << 20
PAGES = 256
"""Of 4 KiB, that the guest has touched of local and of pool memory."""


def test_by_itself_it_reads_nothing_of_others(agent: Separated, guest: int, pool_file: Path) -> None:
    for path in (f"/proc/{guest}/maps", f"/proc/{guest}/pagemap", f"/proc/{guest}/map_files", pool_file):
        assert agent.answer(f"Path('{path}').stat() and __import__('os').listdir('{path}')")["error"] in (
            "PermissionError",
            "NotADirectoryError",
        )
    assert agent.answer(f"Path('/proc/{guest}/maps').read_text()")["error"] == "PermissionError"
    assert agent.answer(f"Path('{pool_file}').read_bytes()")["error"] == "PermissionError"


def test_telemetry_of_a_guest(agent: Separated, guest: int) -> None:
    assert agent.ask("memory_users.guests()").get(UUID) == guest  # others of this machine are there, too
    figures = agent.ask(f"[(f.touched_bytes, f.reason) for f in untouched.measure({guest}, untouched.groups({guest}))]")
    assert figures == [[PAGES * 4096, ""], [PAGES * 4096, ""]]
    assert agent.ask(f"access.under_kvm({guest})") is False
    ranges = f"[item for group in untouched.groups({guest}) for item in group.ranges]"
    agent.ask(f"access.referenced.scan({guest}, {ranges})")
    used = f"[(u.hot_bytes, u.cold_bytes) for u in access.referenced.scan({guest}, {ranges})]"
    assert agent.ask(used) == [[0, PAGES * 4096], [0, PAGES * 4096]]


def test_counters_of_a_guests_threads(agent: Separated, guest: int) -> None:
    """Of software events, which every kernel has."""
    agent.ask("globals().update(counters=guest_process.Counters())")
    found = agent.answer(f"globals()['counters'].add({guest}, [Event(1, 2)], guest_only=False)")
    if found.get("error") == "NotCounted":
        pytest.skip(f"perf_event_open: {found['text']}")
    assert found == {"value": None}
    assert len(agent.ask("globals()['counters'].read()")) == 1
    agent.ask("globals()['counters'].close()")
    assert agent.answer("privileged.read_counters([1])")["error"] == "OSError"


def test_slices_that_a_guest_maps_are_seen(agent: Separated, guest: int, pool_file: Path) -> None:
    """An agent that saw nothing would take them from a running guest."""
    del guest
    device, inode = file_id(pool_file)
    found = agent.ask(
        f"[(r.start, r.stop) for r in mapped_files.mapped_ranges([({device}, {inode})])[{device}, {inode}]]"
    )
    assert found == [[4 * MIB, 8 * MIB]]


def test_pages_of_a_guest_move(agent: Separated, guest: int) -> None:
    """To where they are, on a machine of one node."""
    regions = agent.ask(f"[(r.start, r.end) for r in guests.find('{UUID}').regions() if r.end - r.start == {8 * MIB}]")
    start, end = regions[0]
    assert agent.ask(f"mitigation.move_pages({guest}, [({start}, {end}, 4096)], 0)") == ""
    assert agent.ask(f"mitigation.gather_pages({guest}, [({start}, {end}, 4096)], 0, 10)") == [0, 0, ""]
    assert agent.ask(f"vacated.uses({guest}, 0)") is True
    assert agent.ask(f"memory_users.pages_on_node(0)[{guest}]") >= 2 * PAGES


def test_what_needs_no_capability_is_done_as_root(agent: Separated) -> None:
    """Attributes, cgroups and libvirt are root's: the kernel and libvirt answer, not the check of permissions."""
    found = agent.answer("cxl.write_attribute('/sys/devices/system/memory/memory99999/state', 'online')")
    assert found == {"value": "No such file or directory"}
    assert agent.ask("partition.write_cgroup('/sys/fs/cgroup/nobody.slice/cpuset.mems', '0')") in (
        "No such file or directory",
        "Permission denied",  # cgroup v2 is not there
    )


REFUSED = [
    ("mitigation.move_pages(1, [], 0)", "ValueError"),
    ("mitigation.read_maps({agent})", "ValueError"),
    ("partition.numa_maps(1)", "ValueError"),
    ("partition.numa_maps({agent})", "ValueError"),
    ("privileged.text(1, 'maps')", "ProcessLookupError"),
    ("privileged.text(0, 'maps')", "ProcessLookupError"),
    ("privileged.text({guest}, 'mem')", "ValueError"),
    ("privileged.text({guest}, '../1/maps')", "ValueError"),
    ("privileged.clear_refs(1)", "ProcessLookupError"),
    ("privileged.present(1, 0, 4096)", "ProcessLookupError"),
    ("privileged.under_kvm(1)", "ProcessLookupError"),
    ("privileged.block_bytes({guest}, '../exe')", "ValueError"),
    ("privileged.allocated_bytes({guest}, '../root/etc/shadow', 0, 4096)", "ValueError"),
    ("privileged.open_counters(1, [(1, 2)], False)", "ProcessLookupError"),
    ("privileged.open_counters({guest}, [(1, 2)] * 99, False)", "ValueError"),
    ("privileged.read_damon('../../../kernel/notes')", "ValueError"),
    ("privileged.read_damon('nr_kdamonds/../../../../../kernel/notes')", "ValueError"),
    ("privileged.read_damon('0/contexts/0/schemes/0/tried_regions/../../../x')", "ValueError"),
    ("privileged.write_damon('0/contexts/0/schemes/0/quotas/ms', '0')", "ValueError"),
    ("privileged.write_damon('0/contexts/0/targets/0/pid_target', '1')", "ProcessLookupError"),
    ("privileged.write_damon('0/contexts/0/schemes/0/action', 'pageout')", "ValueError"),
    ("privileged.write_damon('0/contexts/0/operations', 'paddr')", "ValueError"),
    ("libvirt_domains.check('qemu+ssh://elsewhere/system')", "ValueError"),
    ("libvirt_domains.rewrite('qemu:///system', '../x')", "ValueError"),
    ("cxl.read_attribute('/etc/shadow')", "ValueError"),
    ("cxl.read_attribute('/sys/bus/cxl/devices/../../../kernel/notes')", "ValueError"),
    ("cxl.read_attribute('/sys/bus/dax/devices/dax0.0/../../../../kernel/notes')", "ValueError"),
    ("cxl.write_attribute('/sys/power/state', 'mem')", "ValueError"),
    ("partition.put_drop_in('/etc/systemd/system/x.service.d/y.conf', '')", "ValueError"),
]


def test_what_the_agent_never_asks_for_is_refused(agent: Separated, guest: int) -> None:
    """One agent for all, as each takes a second to start."""
    found = {}
    for asked, _ in REFUSED:
        found[asked] = agent.answer(asked.format(agent=agent.process.pid, guest=guest)).get("error", "done")
    assert found == dict(REFUSED)


def test_a_guest_is_what_root_has_started(agent: Separated) -> None:
    """Who has broken into the agent could start a process of its own that says it is a guest."""
    words = f"['python3', '-c', 'input()', '-uuid', '{UUID}']"
    agent.ask(f"globals().update(own=__import__('subprocess').Popen({words}, stdin=-1))")
    pid = agent.ask("globals()['own'].pid")
    assert agent.answer(f"privileged.text({pid}, 'maps')")["error"] == "ProcessLookupError"
    assert agent.answer(f"mitigation.read_maps({pid})")["error"] == "ValueError"
    agent.ask("globals()['own'].kill()")
