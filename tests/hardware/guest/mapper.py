"""A process that stands for a guest of a consumer: it maps its slices as one dax device, as its QEMU does.

Arguments: -uuid CONSUMER DEVICE MIB TEXT [RECORD]. Tells what it finds at the start of each MiB, writes the text there
and each line of its input at the start; stays until that ends. With a record it holds its lock, as a head does.
"""

import mmap
import os
import sys
from pathlib import Path

from pondstack_agent.qemu.attachment_lock import hold

_MIB = 1 << 20


def main() -> None:
    """Be the guest."""
    _option, _consumer, device, size_mib, text, *record = sys.argv[1:]
    if record:
        hold(Path(record[0]))
    data, places = text.encode(), [number * _MIB for number in range(int(size_mib))]
    descriptor = os.open(device, os.O_RDWR)
    memory = mmap.mmap(descriptor, int(size_mib) * _MIB)
    os.close(descriptor)
    seen = {bytes(memory[at : at + len(data)]) for at in places}
    found = seen.pop() if len(seen) == 1 else b"different"
    for at in places:
        memory[at : at + len(data)] = data
    print(f"found {found.hex()}", flush=True)
    for line in sys.stdin:
        memory[: len(line)] = line.encode()
        print("wrote", flush=True)


if __name__ == "__main__":
    main()
