"""What tests with an attached process share. They need root: userfaultfd, ptrace, another process's descriptors."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .. import builds
from ..processes import REST_US, DataPlane, StandinGuest


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The data plane, with sanitizers and points to die at, and the stand-in guest."""
    return builds.programs(tmp_path_factory)


@pytest.fixture
def plane(programs: tuple[Path, Path], tmp_path: Path) -> Iterator[DataPlane]:
    """One that runs."""
    made = DataPlane(programs[0], tmp_path / "plane")
    made.start()
    made.await_ready()
    yield made
    made.stop()


@pytest.fixture
def guest(programs: tuple[Path, Path]) -> Iterator[Callable[..., StandinGuest]]:
    """Start guests; they end with the test."""
    started: list[StandinGuest] = []

    def start(mib: int, threads: int = 2, seed: int = 1, pattern: str = "random") -> StandinGuest:
        rest_us = 0 if pattern == "discard" else REST_US  # races of pages that are given up need all that can be had
        started.append(StandinGuest(programs[1], mib, threads, seed, pattern, rest_us=rest_us))
        return started[-1]

    yield start
    for each in started:
        each.kill()
