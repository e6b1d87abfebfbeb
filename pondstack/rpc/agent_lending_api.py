"""Client of the agents for lent memory (Zombieland, section 4). The controller calls all of it with its epoch.

`incarnation` names one life of a lender's memory: with it, a call that is late finds that its buffers are gone, and
does not take those of the next life for them. `generations`, by index, are those of the ledger: a late call does
nothing to the keys of a later owner. Keys on the wire: {text of the buffer's index: key}; generations likewise.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging

from pondstack.domain.admission import LentReport
from pondstack.domain.errors import HostUnusable
from pondstack.rpc.former import does_not_know

LENDING_VERSION = "1.1"
"""The version of the agent's endpoint that these calls came with; an older agent refuses them."""
LENT_VERSION = "1.3"
"""The version that get_lent() came with."""
ESCROW_VERSION = "1.9"
"""The version that escrow() and connect() came with; where an agent is older, its host takes no part in the escrow."""

SHARE_VERSION = "1.16"
"""The version that share() came with; where an agent is older, guests that move borrow anew of its host."""


class AgentLendingAPI(ABC):
    """The part of AgentAPI for lenders and borrowers. All raise HostUnusable when the host takes no part in it."""

    @abstractmethod
    def _call(self, host: str, method: str, *, version: str | None = None, **arguments: Any) -> Any:
        """Call one agent."""

    def lend(self, host: str, *, epoch: int, operation_id: str, mib: int, kind: str) -> dict[str, Any]:
        """Have up to so many MiB registered in all; `kind` active or zombie. Returns at once, the agent delegates.

        Answers {"operation_id", "verb", "state": pending, telling or done, "mib", "done_mib", "reason"}. Raises
        StaleEpoch, BadRequest, Conflict (another lend or reclaim is under way), OperationMismatch.
        """
        return self._lent(host, "lend", epoch=epoch, operation_id=operation_id, mib=mib, kind=kind)

    def reclaim(
        self, host: str, *, epoch: int, operation_id: str, mib: int, seconds: float | None = None
    ) -> dict[str, Any]:
        """Have the host take so many MiB back (GS_reclaim, Zombieland 4.3); it asks controller.reclaim for them.

        After `seconds` (None: the agent's [lending] reclaim_seconds) it revokes keys on its own. Answers as `lend`.
        """
        return self._lent(host, "reclaim", epoch=epoch, operation_id=operation_id, mib=mib, seconds=seconds)

    def export(
        self,
        host: str,
        *,
        epoch: int,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str = "",
        generations: Mapping[int, int] | None = None,
    ) -> dict[str, Any]:
        """Make keys of buffers for one borrower, all or none; the same answer while they live.

        Answers {"incarnation", "ticket", "keys"}. Raises StaleEpoch, NotFound (no such buffer or incarnation), InUse
        (another borrower's key lives), Conflict (keys of these generations were ended before), Unavailable (no memory,
        or the lender does not answer).
        """
        return self._lent(
            host,
            "export",
            epoch=epoch,
            indexes=list(indexes),
            borrower=borrower,
            incarnation=incarnation,
            **_plain(generations),
        )

    def escrow(
        self,
        host: str,
        *,
        epoch: int,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str,
        generations: Mapping[int, int],
    ) -> dict[str, Any]:
        """Make keys of free buffers for one of several borrowers, all or none; nobody gets them before their owner.

        Without `indexes` the borrower is let in only. Answers and raises as `export`; InUse: a buffer has an owner's
        key. HostUnusable: the agent is of a former release.
        """
        arguments = {"indexes": list(indexes), "borrower": borrower, "incarnation": incarnation, **_plain(generations)}
        answer: dict[str, Any] = self._since(ESCROW_VERSION, host, "escrow", epoch=epoch, **arguments)
        return answer

    def share(
        self,
        host: str,
        *,
        epoch: int,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str,
        generations: Mapping[int, int],
    ) -> dict[str, Any]:
        """Make keys more of buffers in use, all or none, for the host that their consumer moves to.

        A later export() to one of both ends the other's. Answers and raises as `export`; Conflict: no key of these
        generations lives. HostUnusable: the agent is of a former release.
        """
        arguments = {"indexes": list(indexes), "borrower": borrower, "incarnation": incarnation, **_plain(generations)}
        answer: dict[str, Any] = self._since(SHARE_VERSION, host, "share", epoch=epoch, **arguments)
        return answer

    def connect(self, host: str, *, epoch: int, lender: str, incarnation: str, ticket: Mapping[str, Any]) -> bool:
        """Have a borrower's data plane connect to a lender while that is awake; returns whether it is connected.

        Raises StaleEpoch, BadRequest, Unavailable, and HostUnusable: it has no data plane, or is of a former release.
        """
        return bool(
            self._since(
                ESCROW_VERSION,
                host,
                "connect",
                epoch=epoch,
                lender=lender,
                incarnation=incarnation,
                ticket=dict(ticket),
            )
        )

    def revoke(
        self,
        host: str,
        *,
        epoch: int,
        indexes: Sequence[int],
        incarnation: str = "",
        generations: Mapping[int, int] | None = None,
    ) -> list[int]:
        """End keys (US_reclaim, Zombieland 4.3), of these generations and older ones, without them all.

        Returns the buffers that have none now, and no content. Raises StaleEpoch, Unavailable: what is not in an
        answer may live.
        """
        arguments = {"indexes": list(indexes), "incarnation": incarnation, **_plain(generations)}
        return self._indexes(host, "revoke", epoch=epoch, **arguments)

    def withdraw(self, host: str, *, epoch: int, indexes: Sequence[int], incarnation: str = "") -> list[int]:
        """Give the memory of buffers back to their host; returns which are gone.

        Raises StaleEpoch, Unavailable, and InUse, with nothing changed, while one of their keys lives.
        """
        return self._indexes(host, "withdraw", epoch=epoch, indexes=list(indexes), incarnation=incarnation)

    def get_lending(self, host: str) -> dict[str, Any]:
        """Return what a host lends: see doc/source/admin/lending.md."""
        return self._lent(host, "get_lending")

    def get_lent(self, host: str) -> LentReport:
        """Return all that a host lends now, for its virt driver; raises Unavailable when nobody knows."""
        answer = self._call(host, "get_lent", version=LENT_VERSION)
        return LentReport(int(answer["mib"]), int(answer["mark"]))

    def prepare(
        self,
        host: str,
        *,
        epoch: int,
        lender: str,
        ticket: Mapping[str, Any],
        keys: Mapping[str, Any],
        allocation_uuid: str = "",
        incarnation: str = "",
    ) -> list[int]:
        """Have a borrower note keys, all or none; `ticket` and `keys` of `export`. Idempotent.

        Returns the buffers. Raises StaleEpoch, BadRequest, Conflict (held otherwise, or given back before). An agent of
        before also opens them, and raises Conflict for a revoked one, Unavailable when the lender does not answer.
        """
        return self._indexes(
            host,
            "prepare",
            epoch=epoch,
            lender=lender,
            ticket=dict(ticket),
            keys=dict(keys),
            allocation_uuid=allocation_uuid,
            incarnation=incarnation,
        )

    def give_back(
        self, host: str, *, epoch: int, allocation_uuid: str, lender: str, indexes: Sequence[int], incarnation: str = ""
    ) -> list[int]:
        """Have a borrower stop using buffers (US_reclaim, Zombieland 4.3); it calls controller.release_buffers then.

        Returns those that are not there (any more). Raises StaleEpoch, Conflict (another allocation's).
        """
        return self._indexes(
            host,
            "give_back",
            epoch=epoch,
            allocation_uuid=allocation_uuid,
            lender=lender,
            indexes=list(indexes),
            incarnation=incarnation,
        )

    def get_borrowing(self, host: str) -> dict[str, Any]:
        """Return what a host borrows: see doc/source/admin/lending.md."""
        return self._lent(host, "get_borrowing")

    def _lent(self, host: str, method: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._call(host, method, version=LENDING_VERSION, **arguments)
        return answer

    def _since(self, version: str, host: str, method: str, **arguments: Any) -> Any:
        try:
            return self._call(host, method, version=version, **arguments)
        except oslo_messaging.MessagingException as error:
            if not does_not_know(error):
                raise
            raise HostUnusable(f"the agent of host {host} is of a former release: upgrade it") from error

    def _indexes(self, host: str, method: str, **arguments: Any) -> list[int]:
        return [int(index) for index in self._call(host, method, version=LENDING_VERSION, **arguments)]


def _plain(generations: Mapping[int, int] | None) -> dict[str, dict[str, int]]:
    return {} if generations is None else {"generations": {str(index): at for index, at in generations.items()}}
