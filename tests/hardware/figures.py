"""Figures that tests measure, printed last: name, value, unit, and the target where there is one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured value; whether a target holds is the test's assertion."""

    name: str
    value: float
    unit: str
    target: str = ""

    def line(self) -> str:
        """Return it for a reader."""
        return f"{self.name:<52} {self.value:>10.3f} {self.unit:<8} {self.target}".rstrip()


class Figures(list[Figure]):
    """Those since the last report, in the order of measuring."""

    def add(self, name: str, value: float, unit: str, target: str = "") -> None:
        """Record one."""
        self.append(Figure(name, value, unit, target))
