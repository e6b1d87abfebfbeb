"""A demonstration as steps: each with its times, its figures, and what was seen of what it promised."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pondstack_rack.layout import RackError

Say = Callable[[str], None]


class Broken(RackError):
    """A step did not come to what it promised; the text says what was seen instead."""


@dataclass
class Step:
    """One step. `begun`: seconds since the story's begin; `wrong` "": all of it held."""

    name: str
    begun: float
    seconds: float = 0.0
    told: list[str] = field(default_factory=list)
    wrong: str = ""

    def check(self, held: bool, what: str, otherwise: object = "") -> None:
        """Tell what holds; raises Broken where it does not."""
        if not held:
            raise Broken(f"{self.name}: it does not hold that {what}" + (f"; seen: {otherwise}" if otherwise else ""))
        self.told.append(what)


@dataclass
class Figure:
    """A figure of the report. `of`: measured, emulated, synthetic or estimated."""

    name: str
    value: str
    of: str = "measured"


class Story:
    """Steps, one after the other, and figures; the first step that breaks is the last."""

    def __init__(self, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._began = clock()
        self.steps: list[Step] = []
        self.figures: list[Figure] = []

    @property
    def holds(self) -> bool:
        """Whether no step broke."""
        return bool(self.steps) and not any(step.wrong for step in self.steps)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Do one step."""
        self._say(name)
        begun = self._clock()
        made = Step(name, begun - self._began)
        self.steps.append(made)
        try:
            yield made
        except Exception as error:
            made.wrong = str(error) or type(error).__name__
            raise
        finally:
            made.seconds = self._clock() - begun

    def figure(self, name: str, value: object, of: str = "measured") -> None:
        """Keep a figure for the end of the report."""
        self.figures.append(Figure(name, str(value), of))
