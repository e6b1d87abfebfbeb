"""What must hold of lent memory after every step of a history. Nothing in here is told to the code under test."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from pondstack.domain.escrow import EscrowedKey
from pondstack.domain.lending import Buffer, LenderKind
from pondstack.domain.states import OWNED, SliceState
from pondstack_rdma.model import Key

from ..invariants import Violation

if TYPE_CHECKING:
    from .lender import Life
    from .world import LendingWorld


class Place(NamedTuple):
    """One buffer of one life of a lender."""

    lender: str
    incarnation: str
    index: int


class LendWatch:
    """Sees each change of ledger, keys and memory. `users`: acknowledged loans that are in use, by place.

    `wrote`: which host wrote a mark. `guaranteed`: allocations that somebody was promised. `again`: what
    a host had of a lender that slept, and got once more, not zeroed in between, by allocation.
    """

    def __init__(self, world: "LendingWorld") -> None:
        self._world = world
        self.buffers: Mapping[Place, Buffer] = {}
        self.users: dict[Place, tuple[str, str]] = {}
        self.wrote: dict[bytes, str] = {}
        self._used_keys: set[tuple[str, int]] = set()
        self._disclosed: dict[tuple[str, int], EscrowedKey] = {}
        self._taken: set[tuple[str, int]] = set()
        self._giving_way: set[tuple[Place, str]] = set()
        self.guaranteed: set[str] = set()
        self.again: set[tuple[Place, str]] = set()

    def ledger_changed(self, buffers: list[Buffer]) -> None:
        """The ledger's buffers are these now."""
        self.buffers = {Place(item.lender, item.incarnation, item.index): item for item in buffers}
        if len(self.buffers) != len(buffers):
            raise Violation("buffer_twice", "the ledger lists a buffer twice")
        for place, item in self.buffers.items():
            owned = bool(item.host and item.allocation_uuid)
            if owned != (item.state in OWNED) and item.state is not SliceState.QUARANTINED:
                raise Violation("owner_of_buffer", f"{item.name} is {item.state} and {item.host} has it")
            if item.host == place.lender:
                raise Violation("borrows_of_itself", item.name)
            user = self.users.get(place)
            if item.state is SliceState.RELEASING and item.reason.startswith("lost") and user and user[0] == item.host:
                raise Violation("loan_taken", f"{item.host} uses {item.name} and was not heard: {item.reason}")
        self._check_giving_way()
        if self._world.claims is not None:
            self._world.claims.look(self.buffers)
        self.look()

    def _check_giving_way(self) -> None:
        """A loan that is to give way to another one is of best effort, and its key can be ended."""
        asked = {
            (place, item.allocation_uuid or ""): item
            for place, item in self.buffers.items()
            if item.state is SliceState.RELEASING and item.reason.startswith("a guaranteed loan")
        }
        new, self._giving_way = set(asked) - self._giving_way, set(asked)
        for key in sorted(new):
            item = asked[key]
            if item.kind is LenderKind.ZOMBIE or item.promised_to is not None:
                raise Violation("taken_of_a_sleeper", f"{item.name} is to go from {item.host} to another host")
            if key[1] in self.guaranteed:
                raise Violation("guaranteed_gives_way", f"{item.name} of {item.host}: {item.reason}")
        self._world.gave_way(len(new))

    def look(self) -> None:
        """Compare what borrowers use, the ledger, and the keys that live."""
        self._world.looked()
        for place, user in self.users.items():
            self._check_user(place, user)
        for life in self._world.lives():
            for entry in life.book.buffers():
                item = self.buffers.get(Place(life.host.name, life.incarnation, entry.index))
                for key in life.book.keys(entry.index) if item is not None else ():
                    self._check_key(life, item, key)

    def _check_user(self, place: Place, user: tuple[str, str]) -> None:
        item = self.buffers.get(place)
        if item is None or ((item.host, item.allocation_uuid) != user and item.heir != user[1]):
            found = "not in the ledger" if item is None else f"{item.state}, of {item.host}"
            raise Violation("loan_handed_on", f"{user[0]} uses buffer {place.index} of {place.lender}: it is {found}")

    def _check_key(self, life: "Life", item: Buffer, key: Key) -> None:
        name, borrower = (life.incarnation, key.number), key.borrower
        if life.book._entries[item.index].escrow and name not in self._disclosed:
            return  # nobody has it
        owner = item.host if item.state in OWNED else None
        if owner == borrower:
            self._used_keys.add(name)
        elif item.shared and (item.state in OWNED or item.promised_to):
            return  # it is being handed over, or was; once its lender is awake it ends the other's key (disagreements)
        elif item.state is SliceState.ONLINE:
            raise Violation("key_of_another", f"{item.name} is {owner}'s, and {borrower} has a live key")
        elif name in self._used_keys and item.state in (SliceState.FREE, SliceState.ASSIGNING):
            if item.promised_to == borrower and owner is None:
                return  # it stays this borrower's until its lender is awake
            raise Violation(
                "key_outlived", f"{item.name} is {item.state}, and its former user {borrower} has a live key"
            )

    def disclosed(self, key: EscrowedKey, number: int) -> None:
        """The controller tells a borrower its key: no other host may have a live one, and it is not dead."""
        life = next((life for life in self._world.lives() if life.incarnation == key.incarnation), None)
        if life is None or key.index not in {entry.index for entry in life.book.buffers()}:
            return
        name, live = (key.incarnation, number), {item.number for item in life.book.keys(key.index)}
        item = self.buffers.get(Place(life.host.name, *key.place))
        handed = item is not None and item.shared
        for (incarnation, other), told in () if handed else self._disclosed.items():
            if (incarnation, told.index) == key.place and told.borrower != key.borrower and other in live:
                raise Violation("disclosed_to_two", f"{key} is told, and {told.borrower} has a live key of it")
        mine = item is not None and item.escrowed and (item.host, item.generation) == (key.borrower, key.generation)
        if mine and number not in live and name not in self._taken:
            raise Violation("dead_key_disclosed", f"{key} is told, and it is dead")
        self._disclosed[name] = key

    def assigned(self, before: Mapping[Place, Buffer], links: Mapping[str, Collection[tuple[str, str]]]) -> None:
        """The ledger has changed: what is given out of a zombie's is in reach of who gets it, by its last report."""
        for place, item in self.buffers.items():
            was = before.get(place)
            new = was is None or (was.state, was.generation) != (item.state, item.generation)
            if new and item.state is SliceState.ASSIGNING and was is not None and was.promised_to == item.host:
                self.again.add((place, item.allocation_uuid or ""))
            if (
                new
                and item.state is SliceState.ASSIGNING
                and item.escrowed
                and place[:2] not in links.get(item.host or "", ())
            ):
                raise Violation("unreachable_given", f"{item.name} is given to {item.host}, which is not linked to it")

    def key_ends(self, life: "Life", key: Key, index: int) -> None:
        """A lender is about to end a key, not by its own need for memory unless `by_host`."""
        item = self.buffers.get(Place(life.host.name, life.incarnation, index))
        if life.by_host:
            self._taken.add((life.incarnation, key.number))
        if item is None or life.by_host or item.state is not SliceState.ONLINE or item.host != key.borrower:
            return
        raise Violation("live_key_ended", f"a command ended the key of {key.borrower}, which has {item.name}")

    def memory_returns(self, life: "Life", index: int) -> None:
        """A lender is about to give memory back to its host."""
        if any(entry.index == index and entry.borrower for entry in life.book.buffers()):
            raise Violation("withdrawn_with_key", f"buffer {index} of {life.host.name} goes back with a live key")
        item = self.buffers.get(Place(life.host.name, life.incarnation, index))
        if item is not None and item.state in OWNED and not life.host_may_take():
            raise Violation("withdrawn_in_use", f"{item.name} goes back to its host while {item.host} has it")
