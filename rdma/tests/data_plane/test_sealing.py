"""Pages sealed by rdma/native/store/sealer.c and by the oracle, page_sealer.py: each opens what the other sealed."""

import random
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fixtures.seeds import seed

from ..page_sealer import PAGE_BYTES, ROW_BYTES, TAG_BYTES, PageSealer
from .builds import HERE, NATIVE, build

GUEST = "6f1c2d1e-0000-4000-8000-000000000001"
PAGES = 1000
_RECORD = struct.Struct(f"<cQQ{TAG_BYTES}s{PAGE_BYTES}s")
_ANSWER = struct.Struct(f"<B{TAG_BYTES}s{PAGE_BYTES}s")

Record = tuple[bytes, int, int, bytes, bytes]
Answer = tuple[int, bytes, bytes]
Native = Callable[[Sequence[Record]], list[Answer]]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = [HERE / "sealing.c", NATIVE / "store" / "sealer.c", NATIVE / "store" / "problem.c"]
    return build(tmp_path_factory.mktemp("sealing") / "sealing", files)


@pytest.fixture
def dice() -> random.Random:
    return random.Random(seed(20182))


@pytest.fixture
def key(dice: random.Random) -> bytes:
    return dice.randbytes(32)


@pytest.fixture
def native(program: Path, key: bytes) -> Native:
    def carry_out(records: Sequence[Record]) -> list[Answer]:
        given = b"".join(_RECORD.pack(*record) for record in records)
        done = subprocess.run([str(program), key.hex(), GUEST], input=given, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return list(_ANSWER.iter_unpack(done.stdout))

    return carry_out


@pytest.fixture
def python(key: bytes) -> PageSealer:
    return PageSealer(key, GUEST, bytearray(PAGES * ROW_BYTES))


def test_what_python_sealed(native: Native, python: PageSealer, dice: random.Random) -> None:
    plain, records = {}, []
    for _ in range(50):
        page = dice.randrange(PAGES)
        plain[page] = dice.randbytes(PAGE_BYTES)
        sealed = python.seal(page, plain[page])
        records = [record for record in records if record[1] != page]
        records.append((b"o", page, *python.row(page), sealed))
    answers = native(records)
    assert [answer[0] for answer in answers] == [1] * len(records)
    assert [answer[2] for answer in answers] == [plain[record[1]] for record in records]


def test_what_native_sealed(native: Native, python: PageSealer, dice: random.Random) -> None:
    records = [(b"s", page, dice.randrange(1, 2**48), bytes(16), dice.randbytes(PAGE_BYTES)) for page in range(50)]
    for record, (done, tag, sealed) in zip(records, native(records), strict=True):
        assert done
        python.put(record[1], record[2], tag)
        assert python.open(record[1], sealed) == record[4]
        assert sealed != record[4]


def test_what_was_changed_is_refused(native: Native, python: PageSealer, key: bytes, dice: random.Random) -> None:
    """A flipped bit of content or tag, another page, another version, zeros of a fresh buffer, another guest's page."""
    other = PageSealer(key, GUEST.replace("6f", "7f"), bytearray(PAGES * ROW_BYTES))
    others = other.seal(7, dice.randbytes(PAGE_BYTES))
    python.seal(8, dice.randbytes(PAGE_BYTES))
    sealed = python.seal(7, dice.randbytes(PAGE_BYTES))
    version, tag = python.row(7)
    at = dice.randrange(PAGE_BYTES)
    flipped = sealed[:at] + bytes([sealed[at] ^ 1 << dice.randrange(8)]) + sealed[at + 1 :]
    wrong = [
        (b"o", 7, version, tag, flipped),
        (b"o", 7, version, bytes([tag[0] ^ 1]) + tag[1:], sealed),
        (b"o", 8, version, tag, sealed),
        (b"o", 7, version + 1, tag, sealed),
        (b"o", 7, version, tag, bytes(PAGE_BYTES)),
        (b"o", 7, *other.row(7), others),
    ]
    right = (b"o", 7, version, tag, sealed)
    assert [answer[0] for answer in native([*wrong, right])] == [0] * len(wrong) + [1]
