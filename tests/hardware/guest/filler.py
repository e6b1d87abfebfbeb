"""A process that stands for a guest of a consumer and writes all of its memory, which is bound to one node of the host.

Arguments: -uuid CONSUMER NODE MIB TEXT. The text is at the start of each page. It stays until its input ends.
"""

import sys

from tests.hardware.guest.tenant import bound_memory

PAGE = 4096
MIB = 2**20


def main() -> None:
    """Be the guest."""
    _option, _consumer, node, size_mib, text = sys.argv[1:]
    # Before the memory: from then on this process has nothing that it allocates elsewhere.
    chunk = text.encode().ljust(PAGE, b"\xa5") * (MIB // PAGE)
    memory = bound_memory(int(node), int(size_mib))
    for start in range(0, len(memory), MIB):
        memory[start : start + MIB] = chunk
    print("filled", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
