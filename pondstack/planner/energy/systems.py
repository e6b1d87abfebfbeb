"""The ways to consolidate that are compared (Zombieland, section 6.6.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

HISTORIES = ("original", "modified")
"""As the trace has it, and with a memory demand that is a multiple of the CPU demand (Zombieland, Fig. 10)."""


class Extends(StrEnum):
    """Whose memory need not be where it runs: nobody's, that of idle servers, everybody's."""

    NOBODY = "nobody"
    IDLE = "idle"
    ALL = "all"


@dataclass(frozen=True)
class System:
    """One way: whether hosts are emptied at all, and whose memory may stay behind."""

    name: str
    consolidates: bool = True
    extends: Extends = Extends.NOBODY


SYSTEMS: Mapping[str, System] = {
    "none": System("none", consolidates=False),
    "neat": System("neat"),
    "oasis": System("oasis", extends=Extends.IDLE),
    "zombie": System("zombie", extends=Extends.ALL),
}
"""neat: hosts are emptied by live migration of whole servers, and suspended (S3).

oasis: neat, and then hosts below oasis_load_percent are emptied though their idle servers leave memory behind, on
memory servers. zombie: servers need a part of their working set where they run; hosts that sleep (Sz) serve the rest.
"""
