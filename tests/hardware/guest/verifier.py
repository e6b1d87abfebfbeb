"""A process that stands for a guest: memory bound to a node of the host, with a pattern, verified all the time.

Arguments: -uuid CONSUMER NODE MIB. After the end of its input it takes a quarter more and prints "wrong N of M looks".
"""

import mmap
import select
import signal
import sys

from tests.hardware.guest.tenant import bound_memory

_PIECE = 1 << 20


def pattern(number: int) -> bytes:
    """Return a MiB that is like no other."""
    return number.to_bytes(8, "little") * (_PIECE // 8)


def wrong(memory: mmap.mmap, pieces: int) -> int:
    """Return how many of the first pieces are not what was written."""
    return sum(memory[n * _PIECE : (n + 1) * _PIECE] != pattern(n + 1) for n in range(pieces))


def main() -> None:
    """Be the guest."""
    _option, _consumer, node, size_mib = sys.argv[1:]
    pieces = int(size_mib)
    more = pieces // 4
    memory = bound_memory(int(node), pieces + more)
    for number in range(pieces):
        memory[number * _PIECE : (number + 1) * _PIECE] = pattern(number + 1)
    print("filled", flush=True)
    looks = bad = 0
    while True:
        bad += wrong(memory, pieces)
        looks += 1
        if select.select([0], [], [], 0)[0]:
            break
    for number in range(pieces, pieces + more):
        memory[number * _PIECE : (number + 1) * _PIECE] = pattern(number + 1)
    bad += wrong(memory, pieces + more)
    print(f"wrong {bad} of {looks} looks", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
