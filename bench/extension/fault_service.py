"""What a fault takes: the pager beside the least that userfaultfd can do, and beside swap under the same limit.

All are one process that touches random pages of a memory four times its limit, one word an access; each page has been
written before. Swap has no event of its own, so `access` compares: what the toucher waits for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.extension.micro import SWAPS, MicroBench, Turn, Work
from bench.extension.penalties import table
from bench.figures import Meter, spread
from bench.pager import Bench

WAYS = {"floor": "userfaultfd floor", "plain": "pager, not sealed", "sealed": "pager, sealed"} | SWAPS
SHARE = 4
"""The memory is so many times the limit."""

_ENDLESS = 10**9


@dataclass(frozen=True)
class FaultBench:
    """Of the memory `mib`. `floor`: that of bench.pager, with a memory of its own size."""

    micro: MicroBench
    floor: Bench
    mib: int = 128

    def turn(self, way: str, number: int) -> Turn:
        """Measure one way."""
        if way == "floor":
            found = self.floor.turn("floor", number)
            return Turn(math.inf, 0, found.access, found.faults, service_us=found.service)
        work = Work(self.mib, _ENDLESS, "touch", self.floor.seconds, self.floor.seed + number)
        if way in SWAPS:
            return self.micro.swapped(work, self.mib // SHARE, way)
        settings: dict[str, Any] = {"policy": "fifo", "read_ahead_pages": 0, "sealed": way == "sealed"}
        return self.micro.extension(work, self.mib // SHARE, **settings)

    def measure(self, rounds: int) -> dict[str, list[Turn]]:
        """Return the turns of each way, by round; every other round runs backwards."""
        found: dict[str, list[Turn]] = {way: [] for way in WAYS}
        with Meter("turns of fault service", rounds * len(WAYS)) as meter:
            for number in range(rounds):
                for at, way in enumerate(list(WAYS) if number % 2 else list(WAYS)[::-1]):
                    found[way].append(self.turn(way, number))
                    meter.show(number * len(WAYS) + at + 1, WAYS[way])
        return found


def rows(found: dict[str, list[Turn]]) -> str:
    """Return the table of what was measured."""
    return table(("", "service, us", "access, us", "access / floor", "faults/s"), [_row(found, way) for way in found])


def _row(found: dict[str, list[Turn]], way: str) -> Sequence[str]:
    turns, floors = found[way], found["floor"]
    access = [each.access_us for each in turns]
    ratios = [each.access_us / floor.access_us for each, floor in zip(turns, floors, strict=True)]
    served = "" if way in SWAPS else spread([each.service_us for each in turns], 1)
    return WAYS[way], served, spread(access, 1), spread(ratios, 2), spread([each.missing_rate for each in turns], 0)
