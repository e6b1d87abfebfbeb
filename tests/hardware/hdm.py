"""HDM decoders: which range of a host's addresses is which memory (CXL 3.1 section 8.2.4.20)."""

from .qtest import Qtest

CACHE_MEM_BYTES = 0x1000
"""The capabilities begin so far into the component's registers."""

DECODERS_CAPABILITY = 5
GLOBAL_CONTROL, ENABLE = 0x04, 0x2
FIRST_DECODER, DECODER_BYTES = 0x10, 0x20
COMMIT, COMMITTED = 1 << 9, 1 << 10


def decode(qtest: Qtest, component: int, number: int, base: int, size_bytes: int, *, port: int = 0) -> None:
    """Have decoder `number` of a component lead a range to `port` (of a device: to its memory from the start).

    Raises RuntimeError when the component refuses it.
    """
    registers = _decoders(qtest, component)
    qtest.put(registers + GLOBAL_CONTROL, ENABLE)
    decoder = registers + FIRST_DECODER + number * DECODER_BYTES
    for offset, value in ((0x00, base), (0x08, size_bytes), (0x14, port)):
        qtest.put(decoder + offset, value & 0xFFFFFFFF)
        qtest.put(decoder + offset + 4, value >> 32)
    qtest.put(decoder + 0x10, COMMIT)
    if not qtest.number(decoder + 0x10) & COMMITTED:
        raise RuntimeError(f"decoder {number} at {registers:#x} is not committed")


def _decoders(qtest: Qtest, component: int) -> int:
    first = component + CACHE_MEM_BYTES
    for header in range(first + 4, first + 4 + 4 * (qtest.number(first) >> 24), 4):
        value = qtest.number(header)
        if value & 0xFFFF == DECODERS_CAPABILITY:
            return first + (value >> 20)
    raise RuntimeError(f"the component at {component:#x} has no decoders")
