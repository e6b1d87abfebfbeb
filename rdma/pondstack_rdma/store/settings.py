"""What can be set for the pages of one VM."""

from dataclasses import dataclass, field

from pondstack_rdma.store.peer import Retry


@dataclass(frozen=True, slots=True)
class Settings:
    """Of RemotePages."""

    retry: Retry = field(default_factory=Retry)
    grace_seconds: float = 1.0
    """So long a lender may be silent before its pages are placed elsewhere; meanwhile they come from the mirror."""
    probe_seconds: float = 1.0
    """How often a lender is asked for a sign of life, so that its death is noticed by an idle VM, too."""
    pages_per_second: float = 20000.0
    """How fast pages are moved in the background, at most: 80 MB a second."""
    pages_at_once: int = 64
    """How many pages are locked for a move."""
    corrupt_limit: int = 3
    """A lender that gave back so many corrupt pages is used no more."""
