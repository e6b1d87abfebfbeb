"""Forms of the margin that is taken off a prediction, one of which production has (pondstack.prediction.untouched)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.ml.bitbrains import Start
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction.untouched import EXTRA_MIB, FLOOR, MARGINS, SPREAD

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Facts:
    """What margins are made of, and what happened, an entry for each start."""

    memory: Array
    spread: Array
    untouched: Array

    @classmethod
    def of(cls, starts: Sequence[Start]) -> "Facts":
        """Return those of some starts."""
        return cls(
            np.array([item.example.request.memory_mib for item in starts], dtype=np.float64),
            np.array([item.spread for item in starts], dtype=np.float64),
            np.array([item.example.untouched_mib for item in starts], dtype=np.float64),
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """A margin that is as much larger for `extra_mib` in a small VM, and for records that are spread.

    `floor` None: the spread does not count.
    """

    extra_mib: int = EXTRA_MIB
    floor: float | None = FLOOR

    def __str__(self) -> str:
        return f"+{self.extra_mib // 1024} GiB, " + ("no spread" if self.floor is None else f"spread + {self.floor:g}")

    @property
    def margins(self) -> tuple[float, ...]:
        """Return the margins to try, the largest first."""
        return tuple(reversed(MARGINS))

    def left(self, shares: Array, facts: Facts) -> Array:
        """Return what each margin leaves of each share: a row for each start."""
        scale = 1.0 if self.floor is None else (self.floor + facts.spread) / (self.floor + SPREAD)
        return shares[:, None] - np.outer((1 + self.extra_mib / facts.memory) * scale, self.margins)


UNIFORM = Shape(0, None)


def pool(left: Array, memory: Array) -> Array:
    """Return whole slices in MiB, as pondstack.prediction.untouched.pool_mib does."""
    slices = np.floor(np.trunc(left * memory[:, None]) / DEFAULT_SLICE_MIB)
    most = np.floor((memory - 1) / DEFAULT_SLICE_MIB)[:, None]
    return np.maximum(np.minimum(slices, most), 0.0) * DEFAULT_SLICE_MIB
