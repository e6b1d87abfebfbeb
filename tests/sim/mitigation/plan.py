"""What a history of mitigations is, drawn from one seed."""

from dataclasses import dataclass
from random import Random

SECONDS = 90.0
"""Operations and faults happen within so many virtual seconds; then all has to come to its end."""
SERVERS = 3


@dataclass(frozen=True, slots=True)
class History:
    """One history. Chances are per moment at which something may happen.

    `kills`: of the controller; `losses`: of calls that are not answered, done or not, or done late; `agents`: of a
    crash of an agent; `users`: of an operation of Nova's; `aborts`: of an operator's. `files`: pool memory is on files,
    which are not copied; `host_mib`: what a host has for guests, `roomless`: hosts whose agents find no local room;
    `stale`: for how much longer, in seconds, schedulers go by an old view.
    """

    seed: int
    kills: float
    losses: float
    agents: float
    users: float
    aborts: float
    files: bool
    host_mib: int
    roomless: tuple[str, ...]
    stale: float


def draw(seed: int, *, only: tuple[str, ...] = ()) -> History:
    """Return the history of a seed; `only`: with faults of these kinds and no others."""
    rng = Random(f"mitigation {seed}")

    def chance(name: str, *among: float) -> float:
        drawn = rng.choice(among)
        return drawn if not only else max(among) if name in only else 0.0

    return History(
        seed,
        kills=chance("kills", 0.0, 0.01, 0.05),
        losses=chance("losses", 0.0, 0.02, 0.08),
        agents=chance("agents", 0.0, 0.005, 0.02),
        users=chance("users", 0.0, 0.01, 0.04, 0.12),
        aborts=chance("aborts", 0.0, 0.002, 0.01),
        files=rng.random() < 0.25,
        host_mib=rng.choice((8, 16, 16, 32)) * 1024,
        roomless=("h1",) if rng.random() < 0.2 else (),
        stale=chance("stale", 0.0, 1.0, 6.0),
    )
