"""Escrow: keys of lent buffers that a lender made for each borrower while it was awake, and that the controller keeps.

A sleeping lender makes no keys, and ends none. So it makes one of each free buffer for each borrower that is linked to
it beforehand; the controller keeps them sealed, and discloses one when it gives out its buffer (Zombieland, section
4.4). From then on the buffer is that borrower's, in use or not, until the lender is awake and has ended its keys. Pure.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pondstack.domain.lending import Buffer, LenderKind

Place = tuple[str, int]
"""An incarnation of a lender, and the index of a buffer in it."""
Link = tuple[str, str]
"""A lender and its incarnation, which a borrower's data plane is connected to."""


@dataclass(frozen=True, slots=True)
class EscrowedKey:
    """One borrower's key of one buffer, sealed.

    `generation`: of the buffer; the key is of no use once the buffer has another one. `sealing_key`: the name of the
    controllers' key that it is sealed with. `sealed`: "" where it was not read.
    """

    incarnation: str
    index: int
    borrower: str
    generation: int
    sealing_key: str = ""
    sealed: str = field(default="", repr=False)

    @property
    def place(self) -> Place:
        """Whose key it is."""
        return self.incarnation, self.index


@dataclass(frozen=True, slots=True)
class Reach:
    """What one host can use of lenders that sleep: what is in escrow for it, and whom it is linked to."""

    keys: Mapping[Place, int] = field(default_factory=dict)
    """The generations of its keys."""
    links: Collection[Link] = frozenset()

    def has_key(self, item: Buffer) -> bool:
        """Return whether its key of a buffer is in escrow, and good."""
        return item.escrowed and self.keys.get((item.incarnation, item.index)) == item.generation

    def covers(self, item: Buffer) -> bool:
        """Return whether the host can use a buffer of a sleeping lender.

        A link that is gone, as after a crash of the data plane, cannot be made again while the lender sleeps.
        """
        return self.has_key(item) and (item.lender, item.incarnation) in self.links


NOWHERE = Reach()
"""Of a host that no sleeping lender has keys for."""


def of_host(keys: Collection[EscrowedKey], links: Collection[Link]) -> Reach:
    """Return the reach of a host, of its keys in escrow and its links."""
    return Reach({key.place: key.generation for key in keys}, frozenset(links))


def wants_escrow(item: Buffer) -> bool:
    """Return whether keys of a buffer are to be put in escrow: it is free, and its lender may fall asleep."""
    return (
        item.kind is LenderKind.ZOMBIE and item.is_free and item.admitted and not item.leaving and not item.promised_to
    )


def unreachable(item: Buffer, links: Mapping[str, Collection[Link]]) -> bool:
    """Return whether a buffer of a lender that sleeps is its borrower's, which has no link to the lender (any more).

    Nobody can use it until the lender is awake. `links`: of the hosts that say whom they are linked to.
    """
    host = item.promised_to
    if item.kind is not LenderKind.ZOMBIE or not item.escrowed or host is None or host not in links:
        return False
    return (item.lender, item.incarnation) not in links[host]
