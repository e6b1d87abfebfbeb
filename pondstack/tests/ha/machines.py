"""Candidates on machines whose clocks, store and failures are played, so that each moment can be chosen."""

from collections.abc import Callable
from dataclasses import replace

from pondstack.domain.errors import NotLeader
from pondstack.ha.candidate import Candidate
from pondstack.ha.lease import Lease, Terms

TERMS = Terms(lease_seconds=3.0, renew_seconds=0.8, margin_seconds=0.2, succession_seconds=5.0)


class World:
    """The row, the database's clock and a clock for each machine; `drift` moves a machine's clock apart."""

    def __init__(self) -> None:
        self.database_now = 1000.0
        self.row = Lease(0, "", 0.0)
        self.ends = 0.0
        self.clocks: dict[str, float] = {}
        self.fails: dict[str, Exception] = {}
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}

    def pass_(self, seconds: float, but: tuple[str, ...] = ()) -> None:
        """Let time pass for the database and for all machines but those whose clocks stand still."""
        self.database_now += seconds
        for name in self.clocks:
            if name not in but:
                self.clocks[name] += seconds


class Store:
    """LeaseStore of one machine: what it does may be slow or fail, before or after it took effect."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def _around(self, what: str) -> None:
        world = self._world
        hook = world.before.pop(f"{self._name}.{what}", None)
        if hook:
            hook()
        error = world.fails.get(f"{self._name}.{what}")
        if error:
            raise error

    def _done(self, what: str) -> None:
        hook = self._world.after.pop(f"{self._name}.{what}", None)
        if hook:
            hook()

    def read(self) -> Lease:
        self._around("look")
        return replace(self._world.row, remaining_seconds=self._world.ends - self._world.database_now)

    def take(self, expected: int, holder: str, lease_seconds: float) -> bool:
        self._around("take")
        world = self._world
        if world.row.epoch == expected and world.ends <= world.database_now:
            world.row = Lease(expected + 1, holder, 0.0)
            world.ends = world.database_now + lease_seconds
        self._done("take")
        return world.row.epoch == expected + 1 and world.row.holder == holder

    def renew(self, epoch: int, lease_seconds: float) -> None:
        self._around("renew")
        if self._world.row.epoch != epoch or not self._world.ends:
            raise NotLeader("ended")
        self._world.ends = self._world.database_now + lease_seconds
        self._done("renew")

    def hand_over(self, epoch: int, successor: str) -> None:
        self._around("hand_over")
        if self._world.row.epoch != epoch:
            raise NotLeader("ended")
        self._world.row = replace(self._world.row, successor=successor)
        self._world.ends = 0.0
        self._done("hand_over")


class Machine:
    """A candidate on a machine of its own, and what it was told."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        world.clocks[name] = 50.0 * (len(world.clocks) + 1)
        self.elected: list[int] = []
        self.deposed: list[str] = []
        self.gives_way = False
        self.candidate = Candidate(
            Store(world, name),
            name=name,
            holder=f"{name}:1:x",
            terms=TERMS,
            clock=lambda: world.clocks[name],
            elected=self.elected.append,
            deposed=self.deposed.append,
            gives_way=lambda: self.gives_way,
        )

    def tick(self) -> None:
        self.candidate.tick()

    @property
    def leads(self) -> bool:
        try:
            self.candidate.check()
        except NotLeader:
            return False
        return True
