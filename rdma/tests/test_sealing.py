"""Sealed pages: what a lender can do to them is detected."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from pondstack.domain.errors import BadRequest, NotFound
from pondstack_rdma import sealing
from pondstack_rdma.errors import PageCorrupt
from pondstack_rdma.sealing import PAGE_BYTES, ROW_BYTES, PageSealer, new_key
from pondstack_rdma.shm import ShmTransport

from .harness import pattern

VM = "7ac7e33b-55c9-4f7f-8b23-c4a1f2c52f3b"
KEY = bytes(range(32))
FIRST, SECOND = pattern(1, PAGE_BYTES), pattern(2, PAGE_BYTES)


@pytest.fixture
def sealer() -> PageSealer:
    return PageSealer(KEY, VM, 8)


def test_what_is_sealed_opens(sealer: PageSealer) -> None:
    sealed = sealer.seal(3, FIRST)
    assert len(sealed) == PAGE_BYTES
    assert sealer.open(3, sealed) == FIRST
    assert sealer.open(3, bytearray(sealed)) == FIRST


def test_equal_pages_do_not_look_equal(sealer: PageSealer) -> None:
    seen = {sealer.seal(page, bytes(PAGE_BYTES)) for page in (0, 1, 0)}
    seen.add(PageSealer(new_key(), VM, 8).seal(0, bytes(PAGE_BYTES)))
    assert len(seen) == 4
    assert bytes(PAGE_BYTES) not in seen


@seed(20181)
@settings(max_examples=50, deadline=None, database=None)
@given(bit=st.integers(0, 8 * PAGE_BYTES - 1))
def test_a_flipped_bit_is_detected(bit: int) -> None:
    sealer = PageSealer(KEY, VM, 8)
    changed = bytearray(sealer.seal(3, FIRST))
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PageCorrupt, match=r"page 3 .* mirror"):
        sealer.open(3, changed)


def test_an_old_page_is_detected(sealer: PageSealer) -> None:
    old = sealer.seal(3, FIRST)
    new = sealer.seal(3, SECOND)
    with pytest.raises(PageCorrupt, match="out of date"):
        sealer.open(3, old)
    assert sealer.open(3, new) == SECOND


def test_an_old_page_of_the_same_content_is_detected(sealer: PageSealer) -> None:
    old = sealer.seal(3, FIRST)
    sealer.seal(3, FIRST)
    with pytest.raises(PageCorrupt):
        sealer.open(3, old)


def test_swapped_pages_are_detected(sealer: PageSealer) -> None:
    pages = {3: sealer.seal(3, FIRST), 4: sealer.seal(4, SECOND)}
    for page, other in ((3, 4), (4, 3)):
        with pytest.raises(PageCorrupt):
            sealer.open(page, pages[other])


def test_zeros_of_a_fresh_buffer_are_detected(sealer: PageSealer) -> None:
    sealer.seal(3, bytes(PAGE_BYTES))
    with pytest.raises(PageCorrupt):
        sealer.open(3, bytes(PAGE_BYTES))


@pytest.mark.parametrize(("key", "vm"), [(bytes(32), VM), (KEY, "another VM")])
def test_another_vms_page_is_detected(key: bytes, vm: str) -> None:
    """Even with the table of the right one."""
    table = bytearray(8 * ROW_BYTES)
    sealed = PageSealer(KEY, VM, 8, table).seal(0, FIRST)
    with pytest.raises(PageCorrupt):
        PageSealer(key, vm, 8, table).open(0, sealed)


def test_a_table_outlives_its_process() -> None:
    table = bytearray(8 * ROW_BYTES)
    sealed = PageSealer(KEY, VM, 8, table).seal(7, FIRST)
    assert PageSealer(KEY, VM, 8, memoryview(table)).open(7, sealed) == FIRST


def test_no_nonce_comes_twice_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends after it has encrypted, before it keeps the tag."""
    table, nonces = bytearray(8 * ROW_BYTES), []

    class Cipher:
        def __init__(self, key: bytes) -> None:
            self._real = AESGCM(key)
            self.decrypt = self._real.decrypt

        def encrypt(self, nonce: bytes, data: bytes, about: bytes) -> bytes:
            nonces.append(nonce)
            if len(nonces) == 2:
                raise KeyboardInterrupt
            return self._real.encrypt(nonce, data, about)

    monkeypatch.setattr(sealing, "AESGCM", Cipher)
    first = PageSealer(KEY, VM, 8, table)
    old = first.seal(0, FIRST)
    with pytest.raises(KeyboardInterrupt):
        first.seal(0, SECOND)
    again = PageSealer(KEY, VM, 8, table)
    with pytest.raises(PageCorrupt):
        again.open(0, old)  # it was about to be replaced: nobody knows which one the lender has
    assert again.open(0, again.seal(0, SECOND)) == SECOND
    assert len(set(nonces)) == len(nonces) == 3


def test_no_nonce_comes_twice_among_threads(sealer: PageSealer) -> None:
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(lambda _: sealer.seal(5, FIRST), range(200)))
    assert len(set(seen)) == 200


def test_what_is_no_page_is_refused(sealer: PageSealer) -> None:
    with pytest.raises(NotFound, match="never"):
        sealer.open(0, FIRST)
    for page in (-1, 8, 2**64):
        with pytest.raises(NotFound, match="0 to 7"):
            sealer.seal(page, FIRST)
    for data in (b"", FIRST[1:], FIRST + b"x"):
        with pytest.raises(BadRequest, match="4096 bytes"):
            sealer.seal(0, data)


@pytest.mark.parametrize(
    ("key", "pages", "table"),
    [(KEY[1:], 8, None), (KEY, 0, None), (KEY, 2**48 + 1, None), (KEY, 8, bytearray(ROW_BYTES))],
)
def test_a_sealer_that_cannot_be(key: bytes, pages: int, table: bytearray | None) -> None:
    with pytest.raises(BadRequest):
        PageSealer(key, VM, pages, table)


def test_a_key_that_is_used_up() -> None:
    table = bytearray(ROW_BYTES)
    table[:8] = (2**48 - 1).to_bytes(8, "little")
    with pytest.raises(BadRequest, match="new key"):
        PageSealer(KEY, VM, 1, table).seal(0, FIRST)


def test_a_lender_learns_and_changes_nothing(tmp_path: Path) -> None:
    sealer = PageSealer(new_key(), VM, 4)
    with ShmTransport(tmp_path).lend("lender1") as lender:
        region = lender.register(4 * PAGE_BYTES)
        key = lender.export(region, "host1")
        with ShmTransport(tmp_path).connect(lender.admit("host1"), 10) as link:
            for page in range(4):
                link.write(key, page * PAGE_BYTES, sealer.seal(page, b"secret.." * 512))
            assert b"secret" not in lender.load(region, 0, region.size_bytes)
            lender.store(region, PAGE_BYTES, lender.load(region, 0, PAGE_BYTES))
            assert sealer.open(0, link.read(key, 0, PAGE_BYTES)) == b"secret.." * 512
            with pytest.raises(PageCorrupt):
                sealer.open(1, link.read(key, PAGE_BYTES, PAGE_BYTES))
