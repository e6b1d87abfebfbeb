"""RPC endpoint of the lender side: pondstack.rpc.agent_lending_api on the wire; checks arguments, epochs first."""

from collections.abc import Mapping, Sequence
from typing import Any

import oslo_messaging

from pondstack.domain.errors import BadRequest
from pondstack.domain.lending import LenderKind
from pondstack.rpc.agent_lending_api import SHARE_VERSION
from pondstack_agent.epoch import EpochGuard
from pondstack_agent.lending.lending import Lending
from pondstack_agent.lending.model import numbered
from pondstack_agent.rpc_errors import answered, need


class LendingEndpoint:
    """The controller's commands to a lender. All raise StaleEpoch, and HostUnusable where nothing is lent (None)."""

    target = oslo_messaging.Target(version=SHARE_VERSION)

    def __init__(self, lending: Lending | None, epoch: EpochGuard) -> None:
        self._lending, self._epoch = lending, epoch

    @answered
    def lend(self, _context: Any, *, epoch: int, operation_id: str, mib: int, kind: str) -> dict[str, Any]:
        """Have up to so many MiB registered in all; goes on in the background. Answers its progress."""
        lending = self._commanded(epoch)
        if kind not in list(LenderKind) or mib < 0:
            raise BadRequest(
                f"a host lends as {' or '.join(LenderKind)} and no fewer than 0 MiB, not {mib} MiB as {kind!r}"
            )
        return lending.lend(operation_id, mib, LenderKind(kind))

    @answered
    def reclaim(
        self, _context: Any, *, epoch: int, operation_id: str, mib: int, seconds: float | None = None
    ) -> dict[str, Any]:
        """Take so many MiB back, after `seconds` without the controller. Answers its progress."""
        lending = self._commanded(epoch)
        if mib <= 0:
            raise BadRequest(f"a host takes more than 0 MiB back, not {mib}")
        return lending.reclaim(operation_id, mib, seconds)

    @answered
    def export(
        self,
        _context: Any,
        *,
        epoch: int,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str = "",
        generations: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """Make keys of buffers for one borrower. Answers {"incarnation", "ticket", "keys": {index: key}}."""
        return self._commanded(epoch).export(indexes, borrower, incarnation, numbered(generations))

    @answered
    def escrow(
        self,
        _context: Any,
        *,
        epoch: int,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str,
        generations: Mapping[str, int],
    ) -> dict[str, Any]:
        """Make keys of free buffers for one of several borrowers. Answers as export."""
        return self._commanded(epoch).escrow(indexes, borrower, incarnation, numbered(generations) or {})

    @answered
    def share(
        self,
        _context: Any,
        *,
        epoch: int,
        indexes: Sequence[int],
        borrower: str,
        incarnation: str,
        generations: Mapping[str, int],
    ) -> dict[str, Any]:
        """Make keys more of buffers in use, for the host that their consumer moves to. Answers as export."""
        return self._commanded(epoch).share(indexes, borrower, incarnation, numbered(generations) or {})

    @answered
    def revoke(
        self,
        _context: Any,
        *,
        epoch: int,
        indexes: Sequence[int],
        incarnation: str = "",
        generations: Mapping[str, int] | None = None,
    ) -> list[int]:
        """End the keys of buffers; returns which have none now."""
        return self._commanded(epoch).revoke(indexes, incarnation, numbered(generations))

    @answered
    def withdraw(self, _context: Any, *, epoch: int, indexes: Sequence[int], incarnation: str = "") -> list[int]:
        """Give the memory of buffers back to the host; returns which are gone."""
        return self._commanded(epoch).withdraw(indexes, incarnation)

    @answered
    def get_lending(self, _context: Any) -> dict[str, Any]:
        """Return what is lent, how much more could be, and how far operations are (doc/source/admin/lending.md)."""
        return need(self._lending).get_lending()

    @answered
    def get_lent(self, _context: Any) -> dict[str, int]:
        """Return how much is lent now, and which buffers; the virt driver asks. Answers {"mib", "mark"}."""
        return need(self._lending).get_lent()._asdict()

    def _commanded(self, epoch: int) -> Lending:
        lending = need(self._lending)
        self._epoch.check(epoch)
        return lending
