"""Client of the controllers for lent memory (since 1.2); part of pondstack.rpc.controller_api.ControllerAPI."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import oslo_messaging

from pondstack.domain.requests import BorrowRequest
from pondstack.rpc.former import does_not_know
from pondstack.rpc.wire import to_arguments

LENDING_VERSION = "1.2"
"""The version that delegate(), reclaim() and release_buffers() came with."""
INHERITANCE_VERSION = "1.19"
"""The version since which what a consumer has elsewhere can be borrowed by the host that it moves to."""


class ControllerLendingAPI(ABC):
    """The part of ControllerAPI by which hosts lend and borrow."""

    @abstractmethod
    def _call_since(self, since: str, name: str, /, **arguments: Any) -> Any:
        """Call a method of the leader that came with the version `since`."""

    def delegate(
        self,
        *,
        host: str,
        sequence: int,
        incarnation: str,
        kind: str,
        buffer_mib: int,
        buffers: Sequence[dict[str, int]],
    ) -> None:
        """Report all that a host lends (GS_goto_zombie of Zombieland 4.3, when `kind` is zombie).

        `sequence`: of the host's reports; a lower one than before is late and changes nothing.
        `buffers`: {"index", "offset_mib"} of every one; what is not among them, and all of other incarnations, is lent
        no more and its keys are dead. `incarnation` "": the host lends nothing.
        """
        self._lent(
            "delegate",
            host=host,
            sequence=sequence,
            incarnation=incarnation,
            kind=kind,
            buffer_mib=buffer_mib,
            buffers=list(buffers),
        )

    def reclaim(self, *, operation_id: str, host: str, mib: int) -> dict[str, Any]:
        """Ask for lent memory back (GS_reclaim, Zombieland 4.3); asked again until it is there.

        Answers {"indexes": the host's buffers that nobody has (any more), and that go to nobody from now on}.
        """
        answer: dict[str, Any] = self._lent("reclaim", operation_id=operation_id, host=host, mib=mib)
        return answer

    def release_buffers(
        self,
        *,
        operation_id: str,
        host: str,
        allocation_uuid: str,
        lender: str,
        incarnation: str,
        indexes: Sequence[int],
    ) -> None:
        """The borrower `host` uses these buffers of an allocation no more, and has closed their keys."""
        self._lent(
            "release_buffers",
            operation_id=operation_id,
            host=host,
            allocation_uuid=allocation_uuid,
            lender=lender,
            incarnation=incarnation,
            indexes=list(indexes),
        )

    def borrow(self, operation_id: str, request: BorrowRequest) -> dict[str, Any]:
        """Ask for buffers: all or nothing when `guaranteed` (GS_alloc_ext), else what there is (GS_alloc_swap).

        Answers {"allocation_uuid", "buffers": [{"lender", "incarnation", "index", "offset_mib", "size_mib",
        "generation"}], "lenders": {host: {"incarnation", "ticket", "keys"}}}; a lender that sleeps is not among the
        latter: its keys were opened beforehand. Raises BufferShortage, NotAligned, HostUnusable, AgentUnavailable.

        What is handed over by `request.source` has "handed": true among the buffers; nothing is by a leader of a former
        release.
        """
        answer: dict[str, Any]
        try:
            asked = {"operation_id": operation_id, **to_arguments(request)}
            handed = bool(request.source)
            answer = (
                self._call_since(INHERITANCE_VERSION, "borrow", **asked) if handed else self._lent("borrow", **asked)
            )
        except oslo_messaging.MessagingException as error:
            if not request.source or not does_not_know(error):
                raise
            anew = to_arguments(replace(request, source=""))
            answer = self._lent("borrow", operation_id=operation_id, **anew)
        return answer

    def acknowledge_borrowed(
        self, *, operation_id: str, allocation_uuid: str, host: str, opened: Sequence[tuple[str, int]]
    ) -> None:
        """The borrower has opened the keys of an allocation, and is going to use these (incarnation, index).

        Raises Conflict when one of them was taken back meanwhile: give the allocation back.
        """
        self._lent(
            "acknowledge_borrowed",
            operation_id=operation_id,
            allocation_uuid=allocation_uuid,
            host=host,
            opened=list(opened),
        )

    def delegate_host(self, *, name: str, mib: int, kind: str, operation_id: str | None = None) -> dict[str, Any]:
        """Have a host lend so many MiB in all, as `active` or `zombie`; goes on in the background.

        Answers {"operation_id", "verb", "state", "mib", "done_mib", "reason"}. Raises NotFound, BadRequest, Conflict
        (another one is under way there), AgentUnavailable, HostUnusable (it takes no part).
        """
        answer: dict[str, Any] = self._lent(
            "delegate_host", name=name, mib=mib, kind=kind, operation_id=operation_id or str(uuid4())
        )
        return answer

    def reclaim_host(
        self, *, name: str, mib: int, seconds: float | None = None, operation_id: str | None = None
    ) -> dict[str, Any]:
        """Have a host take so many MiB back, by force after `seconds`; answers and raises as delegate_host."""
        answer: dict[str, Any] = self._lent(
            "reclaim_host", name=name, mib=mib, seconds=seconds, operation_id=operation_id or str(uuid4())
        )
        return answer

    def _lent(self, method: str, **arguments: Any) -> Any:
        return self._call_since(LENDING_VERSION, method, **arguments)
