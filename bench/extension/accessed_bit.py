"""The policies' reference models on the skewed trace of the micro benchmark, with the accessed bit of page tables.

What a pager by userfaultfd sees is faults; Zombieland's hypervisor sees each access. This is a simulation, of faults
alone: it says how much of Fig. 8 is owed to that bit.
"""

import itertools
from collections.abc import Iterator, Sequence

from bench.extension.penalties import table
from rdma.tests.data_plane.policies import MODELS

PARAMETERS = {"fifo": 0, "clock": 0, "mixed": 5, "s3-fifo": 10}
PAGES, ROUNDS = 2048, 6
_MASK = 2**64 - 1


def rows(shares: Sequence[int], seed: int) -> str:
    """Return the table of faults of 100 accesses."""
    lines = []
    for share, clears in itertools.product(shares, (True, False)):
        found = [faults(policy, PAGES, share, ROUNDS * PAGES, seed, clears) for policy in PARAMETERS]
        lines.append([f"{share} %", "a look" if clears else "time", *(f"{each:.1f}" for each in found)])
    return table(("local memory", "what clears the bit", *PARAMETERS), lines)


def mix(value: int) -> int:
    """Splitmix64, as in microbenchmark.c."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def skewed(pages: int, accesses: int, seed: int) -> Iterator[int]:
    """Yield the pages that microbenchmark.c chooses: 80 % of accesses go to a fifth of the pages."""
    dice = mix(seed)
    for _ in range(accesses):
        dice = mix(dice)
        draw = dice >> 16
        yield draw // 10 % (pages // 5 + 1) if draw % 10 < 8 else draw // 10 % pages


def faults(policy: str, pages: int, share: int, accesses: int, seed: int, clears: bool = True) -> float:
    """Return faults of 100 accesses, with an accessed bit that each access sets; all pages have been written before.

    A look at a bit clears it, as Clock's hand does; or, not `clears`, nothing but time: all bits, whenever as many
    accesses were made as there are pages resident, as Zombieland has it (section 6.2).
    """
    model = MODELS[policy](PARAMETERS[policy])
    touched: set[int] = model.touched if clears else set()
    limit = pages * share // 100
    resident = set(range(pages - limit, pages))
    for page in sorted(resident):
        model.admit(page)
    count = 0
    for number, page in enumerate(skewed(pages, accesses, seed)):
        if not clears:
            if number % limit == 0:
                touched.clear()
            model.touched = set(touched)
        if page not in resident:
            count += 1
            if len(resident) >= limit:
                resident.remove(model.victim())
            model.admit(page)
            resident.add(page)
        touched.add(page)
    return 100 * count / accesses
