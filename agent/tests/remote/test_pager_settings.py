"""How guests with remote memory are paged: as their host's configuration says."""

from pondstack_agent.data_plane.pager_settings import PagerSettings

from .conftest import CONSUMER, Rack


def test_a_guest_is_paged_as_its_host_says(rack: Rack) -> None:
    rack.lend("host1", 4)
    host = rack.borrower
    for name, value in (("policy", "s3-fifo"), ("read_ahead_pages", 0), ("chunk_kib", 64)):
        host.conf.set_override(name, value, group="data_plane")
    host.restart()
    host.alloc(4)
    assert host.data_plane
    host.data_plane.boot(CONSUMER, 8)
    host.calls.extend(consumer_uuid=CONSUMER, memory_mib=8, local_mib=4, disk_mib=0)
    assert host.data_plane.pager == {CONSUMER: PagerSettings("s3-fifo", 0, 64)}
