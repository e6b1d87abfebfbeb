"""QEMU for the rack's guests, with one thing mended that live migration under TCG needs; KVM is not concerned.

QEMU 9 to 11 (cpu_physical_memory_sync_dirty_bitmap) clears dirty bits word by word where a RAM block is aligned to a
word of the bitmap (256 KiB), and then resets the TLB of the wrong range for every block but the first. Later writes of
the guest to such a block are not noticed: they are lost, or QEMU fails its assertion in tlb_reset_dirty_range_all. A
block that is no multiple of a word takes the slower path, page by page, which is right. So each CPU-less node gives one
half word (128 KiB) away, at its end.

Started by pondstack-qemu in QEMU's place: `python tcg_qemu.py QEMU ARGUMENTS`. Standard library only.
"""

import json
import os
import re
import sys

WORD_BYTES = 256 * 1024
GIVEN_AWAY_BYTES = WORD_BYTES // 2
KIB = 1024


def mend(arguments: list[str]) -> list[str]:
    """Return QEMU's arguments with odd sizes of the nodes behind the first; others are returned as they are."""
    changed = list(arguments)
    given_away = 0
    for position in range(1, len(changed)):
        if changed[position - 1] != "-object" or not changed[position].startswith("{"):
            continue
        backend = json.loads(changed[position])
        node = re.fullmatch(r"ram-node(\d+)", backend.get("id", ""))
        if node and int(node[1]) > 0 and backend["size"] % WORD_BYTES == 0:
            backend["size"] -= GIVEN_AWAY_BYTES
            given_away += GIVEN_AWAY_BYTES
            changed[position] = json.dumps(backend)
    if given_away:
        total = changed.index("-m") + 1
        changed[total] = _less(changed[total], given_away // KIB)
    return changed


def _less(memory: str, kib: int) -> str:
    match = re.fullmatch(r"size=(\d+)k", memory)
    if match is None:
        raise SystemExit(f"cannot read -m {memory}; libvirt writes size=<number>k")
    return f"size={int(match[1]) - kib}k"


if __name__ == "__main__":
    os.execv(sys.argv[1], [sys.argv[1], *mend(sys.argv[2:])])
