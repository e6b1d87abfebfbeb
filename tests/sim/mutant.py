"""What a deliberately broken variant of the code under test is, and how it is listed."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A variant. `faults`: the kinds that bring it to light, of which its histories have many; (): all kinds."""

    broken: Callable[[], contextlib.AbstractContextManager[None]]
    about: str
    faults: tuple[str, ...] = ()


def lister(mutants: dict[str, Mutant]) -> Callable[..., Callable[[Callable[[], Iterator[None]]], None]]:
    """Return the decorator that lists a variant under its name, given its faults; the docstring says what it breaks."""

    def mutant(*faults: str) -> Callable[[Callable[[], Iterator[None]]], None]:
        def register(function: Callable[[], Iterator[None]]) -> None:
            mutants[function.__name__] = Mutant(contextlib.contextmanager(function), function.__doc__ or "", faults)

        return register

    return mutant
