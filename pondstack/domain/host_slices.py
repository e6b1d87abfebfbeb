"""Host slices: what hosts are to hold of a pool for themselves, and the next step towards that. Pure.

Each host slice is an allocation of its own, with a consumer of its own in Placement. So one more or one less touches
none of the others, and a claim says all there is to say: that consumer's slice, or nothing. The UUIDs of the consumers
follow from host, pool, purpose and number: whoever leads knows them, and nothing has to be remembered.

The order to hold one may reach the host late, when its claim is gone: the host was fenced, or the slice was wanted no
more for a while. Either begins a new generation of the host, and the order's id tells for which one it was given.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from pondstack.domain.purpose import Purpose

_CONSUMERS = UUID("3f0ad1c4-6f6e-5a37-9d5e-7d1c0f5b8a21")
_ORDERS = UUID("8d0f6c52-3b7a-5c1e-9a44-61f0d2b7e9c3")
_NUMBER_DIGITS = 12
"""The last group of a UUID, in hexadecimal digits."""

HOST_PURPOSES = (Purpose.TIER, Purpose.BASE)


@dataclass(frozen=True, slots=True, order=True)
class HoldingKey:
    """What is held by whom, and what for."""

    host: str
    pool_uuid: str
    purpose: Purpose

    def consumer(self, number: int) -> str:
        """Return the consumer of the host slice with this number, from 0 on."""
        return f"{_prefix(_CONSUMERS, self)}{number:0{_NUMBER_DIGITS}x}"

    def numbers(self, consumers: Iterable[str]) -> dict[int, str]:
        """Return which of these consumers are host slices of this key: consumer by number."""
        prefix = _prefix(_CONSUMERS, self)
        return {int(item[-_NUMBER_DIGITS:], 16): item for item in consumers if item.startswith(prefix)}

    def order(self, generation: int, unique: UUID) -> str:
        """Return the operation id of an order to hold a slice, for that generation of the host; `unique`: any UUID.

        It passes through agents of every release unread, and comes back with what they ask the leader for.
        """
        return f"{_prefix(_ORDERS, self, generation)}{str(unique)[-_NUMBER_DIGITS:]}"

    def is_order(self, operation_id: str, generation: int) -> bool:
        """Return whether an operation is an order to hold a slice that was given for that generation of the host."""
        return operation_id.startswith(_prefix(_ORDERS, self, generation))


def _prefix(kind: UUID, key: HoldingKey, *more: int) -> str:
    return str(uuid5(kind, " ".join(map(str, (key.host, key.pool_uuid, key.purpose, *more)))))[:-_NUMBER_DIGITS]


@dataclass(frozen=True, slots=True)
class Holding:
    """How many slices a host is to hold for a purpose. `reason`: what keeps it from that now, '' for nothing.

    One that wants none is there until nothing is left of it.
    """

    host: str
    pool_uuid: str
    purpose: Purpose
    wanted: int
    reason: str = ""

    @property
    def key(self) -> HoldingKey:
        """Whose it is, and what for."""
        return HoldingKey(self.host, self.pool_uuid, self.purpose)

    def told(self, online: int) -> dict[str, Any]:
        """Return what readers are told of it; `online`: how many slices it has online."""
        return {
            "pool_uuid": self.pool_uuid,
            "purpose": str(self.purpose),
            "wanted": self.wanted,
            "online": online,
            "reason": self.reason,
        }


class Act(StrEnum):
    """The next step for one host slice."""

    CLAIM = "claim"
    """Claim it in Placement: nothing is assigned that Placement has not admitted."""
    HOLD = "hold"
    """Have the host get a slice for its claim, and bring it online."""
    GIVE_BACK = "give_back"
    """Have the host take the slice offline. Its claim stays until the host holds it no more."""
    UNCLAIM = "unclaim"
    """Drop the claim: the host has given the slice back."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done for the host slice of a consumer; `allocation_uuid`: of what it has, if it has any."""

    act: Act
    consumer_uuid: str
    allocation_uuid: str = ""


def steps(
    holding: Holding,
    held: Mapping[str, str],
    claimed: Iterable[str],
    *,
    aside: Collection[str] = (),
    dead: bool = False,
) -> Iterator[Step]:
    """Yield the next step of each host slice that is not as it should be; what is wanted no more comes first.

    In that order: a claim may need what another one lets go of.

    `held`: the allocations that the ledger has, by consumer, in whatever state; `aside`: those of them whose slice is
    set aside, which is given back for another one; `claimed`: the consumers that claim something of the pool. `dead`:
    the host is fenced, holds nothing any more, and claims nothing then.
    """
    key, claims = holding.key, set(claimed)
    known = key.numbers({*held, *claims})
    wanted = 0 if dead else holding.wanted
    for number in sorted({*known, *range(wanted)}, key=lambda number: (number < wanted, number)):
        consumer = known.get(number) or key.consumer(number)
        if number < wanted and consumer not in claims:
            yield Step(Act.CLAIM, consumer, held.get(consumer, ""))
        elif number < wanted and consumer not in held:
            yield Step(Act.HOLD, consumer)
        elif number >= wanted and consumer not in held:
            yield Step(Act.UNCLAIM, consumer)
        elif (number >= wanted or consumer in aside) and not dead:  # a dead host's are taken by their device
            yield Step(Act.GIVE_BACK, consumer, held[consumer])
