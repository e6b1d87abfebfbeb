"""Versions that no page reaches, in the table that outlives a page store or in the mirror: writes must go on."""

import struct
from pathlib import Path

import pytest

from pondstack_rdma.errors import PageLost
from pondstack_rdma.store.mirror.disk import FileDisk, Survives
from pondstack_rdma.store.mirror.layout import MOST_VERSION, Header, digest_of, parse_headers
from pondstack_rdma.store.mirror.mirror import Mirror, MirrorLimits, layout_of
from pondstack_rdma.store.pages import RemotePages
from rdma.tests.harness import PAGE, pattern

PAGES = 4
LIMITS = MirrorLimits(queue_pages=4, batch_pages=3, patience_seconds=0.0)


def opened(folder: Path, table: bytearray) -> tuple[RemotePages, Mirror]:
    size = layout_of(PAGES, LIMITS).size_bytes
    mirror = Mirror(FileDisk(folder / "mirror", size, Survives.PROCESS), PAGES, LIMITS)
    return RemotePages(PAGES, mirror, None, versions=table), mirror


def settle(mirror: Mirror) -> None:
    while mirror.turn() is not None:
        pass


@pytest.mark.parametrize("version", [MOST_VERSION + 1, 2**64 - 1])
def test_a_page_of_an_impossible_version_is_lost_and_can_be_written_again(tmp_path: Path, version: int) -> None:
    table = bytearray(8 * PAGES)
    pages, mirror = opened(tmp_path, table)
    pages.write_many({0: pattern(1, PAGE), 1: pattern(2, PAGE)})
    settle(mirror)
    mirror._disk.close()
    struct.pack_into("<Q", table, 8, version)
    pages, mirror = opened(tmp_path, table)
    assert pages.read(0) == pattern(1, PAGE)
    with pytest.raises(PageLost):
        pages.read(1)
    for content in (3, 4):
        pages.write(1, pattern(content, PAGE))
        settle(mirror)
        assert pages.read(1) == pattern(content, PAGE)
    mirror._disk.close()
    assert opened(tmp_path, table)[0].read(1) == pattern(4, PAGE)


def test_a_header_of_an_impossible_version_is_none() -> None:
    data = bytes(PAGE)
    rows = [Header(1, version, digest_of(1, version, data)).pack() for version in (MOST_VERSION, 2**64 - 1)]
    assert [header.version for _, header in parse_headers(b"".join(rows), PAGES)] == [MOST_VERSION]
