"""How the data plane pages a guest: what leaves local memory first, and what comes back with a fault."""

from dataclasses import dataclass
from typing import Any

from pondstack.domain.units import KIB
from pondstack_agent.data_plane.views import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class PagerSettings:
    """`policy`: of replacement; `read_ahead_pages`: most with one fault of a sequential run; `chunk_kib`: comes and
    leaves together.
    """

    policy: str = "mixed"
    read_ahead_pages: int = 8
    chunk_kib: int = 4

    def members(self) -> dict[str, Any]:
        """Return the members of `attach`; chunks only if there are some, which a release before does not know."""
        chunk_pages = self.chunk_kib * KIB // PAGE_BYTES
        chunks = {"chunk_pages": chunk_pages} if chunk_pages > 1 else {}
        return {"policy": self.policy, "read_ahead_pages": self.read_ahead_pages, **chunks}


DEFAULT_PAGER = PagerSettings()
