"""A made-up past to train a model of untouched memory from: projects with habits, each instance says `synthetic`."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from pondstack.domain.history import Lifetime
from pondstack.domain.telemetry import Source
from pondstack.prediction.examples import dump

PROJECTS, WEEKS, INSTANCES = 160, 6, 8
SIZES = ((4096, 2), (8192, 2), (16384, 4))
HABITS = (0.35, 0.95)
"""Least and greatest share of their memory that the instances of a project leave untouched."""
SPREAD = 0.02


def lifetimes(now: datetime, seed: int = 1) -> Iterator[Lifetime]:
    """Return instances of some weeks that have ended: of each project one a day, from a day of its own on."""
    chance = random.Random(seed)
    begin = now - timedelta(weeks=WEEKS)
    for number in range(PROJECTS):
        habit, first = chance.uniform(*HABITS), chance.uniform(0, WEEKS * 7 - INSTANCES)
        for day in range(INSTANCES):
            memory_mib, vcpus = chance.choice(SIZES)
            created = begin + timedelta(days=first + day)
            share = min(max(chance.gauss(habit, SPREAD), 0.0), 1.0)
            yield Lifetime(
                instance_uuid=f"made-up-{number}-{day}",
                project_id=f"made-up-{number}",
                flavor_name=f"made-up-{memory_mib}",
                memory_mib=memory_mib,
                vcpus=vcpus,
                image_os="",
                zone="nova",
                name_key="",
                created_at=created,
                deleted_at=created + timedelta(hours=chance.uniform(1, 12)),
                untouched_mib=int(share * memory_mib),
                coverage=1.0,
                source=Source.SYNTHETIC,
            )


def write(path: Path, now: datetime) -> Path:
    """Write it as `pondstack-manage model train --from` takes it."""
    path.write_text("".join(f"{dump(item)}\n" for item in lifetimes(now)))
    return path
