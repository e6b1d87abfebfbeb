"""Asking the host's data plane: one JSON object each way, a connection per request, each with a deadline."""

import json
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pondstack_agent.data_plane.blocks import BlockClient, BlockDevices
from pondstack_agent.data_plane.errors import DataPlaneGone, DataPlaneRefused, DataPlaneSilent
from pondstack_agent.data_plane.pager_settings import DEFAULT_PAGER, PagerSettings
from pondstack_agent.data_plane.views import GuestView, guests_of, links_of
from pondstack_agent.helper.unix_socket import connect

SOCKET = "control.sock"
_NOT_ATTACHED = "is not attached"
_MOST_ANSWER = 16 * 2**20
"""Bytes: of all guests with all of their leases."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a guest comes from: a data plane's address, and the key of the hand-over, 64 hexadecimal digits.

    `references`: it can tell with which lenders pages are. `mirror`: its mirror's file as it is on this host, "" where
    hosts do not share the file system of their mirrors.
    """

    host: str
    port: int
    key: str = field(repr=False)
    deadline_ms: int
    references: bool = False
    mirror: str = ""

    def members(self) -> dict[str, Any]:
        """Return what the data plane is told; one of a former release knows nothing of the last two."""
        found = asdict(self)
        if not self.references:
            del found["references"]
        if not self.mirror:
            del found["mirror"]
        return found


class DataPlane(Protocol):
    """What the agent asks of the data plane. All raise DataPlaneGone, DataPlaneSilent, DataPlaneRefused.

    A guest is named by its UUID, a lender by the agent's name of its incarnation.
    """

    @property
    def blocks(self) -> BlockDevices:
        """Block devices, beside guests."""

    def attach(
        self,
        guest: str,
        pid: int,
        memory: str,
        mirror: str,
        limit_mib: int,
        pager: PagerSettings = DEFAULT_PAGER,
        incoming: Origin | None = None,
    ) -> GuestView:
        """Serve a process's memory, the mapping with `memory` in its path; idempotent.

        `incoming`: its pages come from there, and what the process has of its memory so far is thrown away.
        """

    def hand_over(self, guest: str, host: str, key: str, deadline_ms: int) -> GuestView:
        """Offer a guest to the data plane that has the key, at this host's address; the view says the port. Idempotent.

        A guest whose process ends while it is offered is that data plane's. `deadline_ms`: of its silence.
        """

    def withdraw(self, guest: str) -> GuestView:
        """Offer it no more, in the background: the view has no hand-over then. Refused once it is the other's."""

    def forget(self, guest: str) -> GuestView:
        """Give up the pages of a guest that is another data plane's."""

    def limit(self, guest: str, limit_mib: int) -> GuestView:
        """Change what may be resident."""

    def lease(self, guest: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> GuestView:
        """Use keys of a lender; those in use already are no error. Stops at the first that the lender refuses.

        Keys with a location go over the link that the data plane keeps to the lender, which is asked for nothing; other
        ones, and all while there is none, over one of the guest's own, by the ticket.
        """

    def leave(self, guest: str, lender: str, numbers: Sequence[int]) -> GuestView:
        """Stop using keys, in the background: the view does not have them once nothing uses them."""

    def connect(self, lender: str, ticket: Mapping[str, Any]) -> None:
        """Keep a link to a lender, for whatever guest is to use it; one that is there is no error."""

    def links(self) -> list[str]:
        """Return the lenders to which links are kept that are not lost."""

    def detach(self, guest: str) -> GuestView:
        """Bring all pages home, in the background: the guest is in no view once that is done."""

    def view(self, guest: str) -> GuestView | None:
        """Return what it tells of a guest, None when that is not attached."""

    def guests(self) -> list[GuestView]:
        """Return what it tells of all guests."""


class ControlClient:
    """Implements DataPlane over the control socket of a folder."""

    def __init__(self, folder: Path, timeout_seconds: float) -> None:
        self.folder, self._seconds = folder, timeout_seconds
        self.blocks: BlockDevices = BlockClient(self._ask)

    def attach(
        self,
        guest: str,
        pid: int,
        memory: str,
        mirror: str,
        limit_mib: int,
        pager: PagerSettings = DEFAULT_PAGER,
        incoming: Origin | None = None,
    ) -> GuestView:
        """Serve a process's memory."""
        more = {} if incoming is None else {"incoming": incoming.members()}
        where = {"guest": guest, "pid": pid, "memory": memory, "mirror": mirror}
        return self._guest(verb="attach", **where, limit_mib=limit_mib, **pager.members(), **more)

    def hand_over(self, guest: str, host: str, key: str, deadline_ms: int) -> GuestView:
        """Offer a guest."""
        return self._guest(verb="hand_over", guest=guest, host=host, key=key, deadline_ms=deadline_ms)

    def withdraw(self, guest: str) -> GuestView:
        """Offer it no more."""
        return self._guest(verb="withdraw", guest=guest)

    def forget(self, guest: str) -> GuestView:
        """Give up its pages."""
        return self._guest(verb="forget", guest=guest)

    def limit(self, guest: str, limit_mib: int) -> GuestView:
        """Change what may be resident."""
        return self._guest(verb="limit", guest=guest, limit_mib=limit_mib)

    def lease(self, guest: str, lender: str, ticket: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> GuestView:
        """Use keys of a lender."""
        given = [dict(key) for key in keys]
        return self._guest(verb="lease", guest=guest, lender=lender, ticket=dict(ticket), keys=given)

    def leave(self, guest: str, lender: str, numbers: Sequence[int]) -> GuestView:
        """Stop using keys."""
        return self._guest(verb="leave", guest=guest, lender=lender, numbers=list(numbers))

    def connect(self, lender: str, ticket: Mapping[str, Any]) -> None:
        """Keep a link to a lender."""
        self._ask({"verb": "connect", "lender": lender, "ticket": dict(ticket)})

    def links(self) -> list[str]:
        """Return the lenders to which links are kept."""
        answer = self._ask({"verb": "view"})
        try:
            return links_of(answer)
        except ValueError as error:
            raise self._strange(error) from error

    def detach(self, guest: str) -> GuestView:
        """Bring all pages home."""
        return self._guest(verb="detach", guest=guest)

    def view(self, guest: str) -> GuestView | None:
        """Return what it tells of a guest."""
        try:
            return self._guest(verb="view", guest=guest)
        except DataPlaneRefused as error:
            if _NOT_ATTACHED in error.message:
                return None
            raise

    def guests(self) -> list[GuestView]:
        """Return what it tells of all guests."""
        answer = self._ask({"verb": "view"})
        try:
            return [GuestView.from_json(found) for found in guests_of(answer)]
        except ValueError as error:
            raise self._strange(error) from error

    def _guest(self, **request: Any) -> GuestView:
        answer = self._ask(request)
        try:
            return GuestView.from_json(answer)
        except ValueError as error:
            raise self._strange(error) from error

    def _ask(self, request: Mapping[str, Any]) -> Any:
        """Return the result of a request."""
        try:
            with connect(self.folder, SOCKET, self._seconds) as link:
                link.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(_line(link, time.monotonic() + self._seconds))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
            raise DataPlaneGone(
                f"no data plane serves {self.folder} ({error.strerror}): start pondstack-data-plane.service"
            ) from error
        except (BlockingIOError, TimeoutError) as error:
            raise DataPlaneSilent(
                f"the data plane of {self.folder} does not answer within {self._seconds:g} s; see whether it is frozen"
            ) from error
        except PermissionError as error:
            raise DataPlaneSilent(
                f"the data plane of {self.folder} lets this user not in: start it with the agent's user ([agent] user)"
            ) from error
        except (OSError, ValueError) as error:  # it ended while it was asked, or it is another program
            raise self._strange(error) from error
        if not isinstance(answer, dict) or ("result" not in answer) == ("error" not in answer):
            raise self._strange(ValueError("no result, and no error"))
        if "error" in answer:
            told = answer["error"]
            raise DataPlaneRefused(str(told.get("text") if isinstance(told, dict) else told))
        return answer["result"]

    def _strange(self, error: Exception) -> DataPlaneSilent:
        return DataPlaneSilent(f"the data plane of {self.folder} gave no answer to go by: {error}")


def _line(link: socket.socket, ends: float) -> bytes:
    """Receive one line; raises TimeoutError, OSError, ValueError when it is none."""
    got = bytearray()
    while not got.endswith(b"\n"):
        left = ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        link.settimeout(left)
        part = link.recv(65536)
        if not part or len(got) > _MOST_ANSWER:
            raise ValueError("the connection ended within an answer" if not part else "the answer has no end")
        got += part
    return bytes(got)
