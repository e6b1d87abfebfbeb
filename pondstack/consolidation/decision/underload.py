"""Step 1 of OpenStack Neat: which hosts are underloaded and could be emptied. Algorithms by name. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pondstack.consolidation.decision.settings import Settings
from pondstack.consolidation.decision.snapshot import HostView, VmView

Servers = Sequence[VmView]


@dataclass(frozen=True, slots=True)
class Underload:
    """One algorithm. `judge`: "" where a host is underloaded, else why it is not.

    `adaptive`: it needs a history of [consolidation] readings.
    """

    judge: Callable[[HostView, Servers, Settings], str]
    adaptive: bool = False


def _static(host: HostView, _servers: Servers, settings: Settings) -> str:
    return _below(host.load[-1], settings, "its CPU load")


def _average(host: HostView, _servers: Servers, settings: Settings) -> str:
    """Neat's averaging detector: the mean of the last readings, so that a short lull empties no host."""
    return _below(fmean(host.load[-settings.readings :]), settings, "its average CPU load")


def _lifetime(host: HostView, servers: Servers, settings: Settings) -> str:
    """As static, but that a host whose servers are all about to end is left to empty itself.

    LAVA (MLSys'25): migrations of servers that end soon anyway are wasted.
    """
    ends = [server.remaining_seconds for server in servers]
    known = [seconds for seconds in ends if seconds is not None]
    if servers and len(known) == len(ends) and max(known) < settings.worth_seconds:
        return f"its servers are predicted to end within {max(known):.0f} s by themselves"
    return _below(host.load[-1], settings, "its CPU load")


def _below(percent: float, settings: Settings, what: str) -> str:
    if percent <= settings.underload_percent:
        return ""
    return f"{what} is {percent:.1f} %, more than {settings.underload_percent:g} %"


ALGORITHMS: Mapping[str, Underload] = {
    "static": Underload(_static),
    "average": Underload(_average, adaptive=True),
    "lifetime": Underload(_lifetime),
}
