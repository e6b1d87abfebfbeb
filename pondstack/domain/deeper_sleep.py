"""Which host that sleeps is to sleep deeper: nobody uses its memory, and the rack has enough without it. Pure.

Zombieland (EuroSys'18) keeps an emptied host in Sz for its memory; where nobody needs that, it costs power for nothing.
"""

from collections.abc import Collection, Iterable

from pondstack.domain.host_sleep import HostSleep, SleepState
from pondstack.domain.lending import Buffer
from pondstack.domain.power import mode_of


def is_changing(item: HostSleep) -> bool:
    """Return whether a host is on its way from one sleep to a deeper one."""
    return bool(item.work.deeper) and item.state in (SleepState.WAKING, SleepState.RECLAIMING, SleepState.SUSPENDING)


def candidates(
    sleeps: Collection[HostSleep], driver: str, seconds: float, wakeable: Collection[str]
) -> list[HostSleep]:
    """Return who has served for `seconds` and could sleep by `driver`, the longest asleep first; one changes at a time.

    `wakeable`: hosts that are reached out of band.
    """
    if not driver or any(map(is_changing, sleeps)):
        return []
    found = [
        item
        for item in sleeps
        if item.state is SleepState.ASLEEP
        and mode_of(item.driver).serves
        and item.host in wakeable
        and item.state_seconds >= seconds
    ]
    return sorted(found, key=lambda item: (-item.state_seconds, item.host))


def choose(found: Iterable[HostSleep], buffers: Collection[Buffer]) -> HostSleep | None:
    """Return the first whose memory nobody has, while what is free of others exceeds what it lends; None: none.

    `buffers`: all of the rack.
    """
    free = sum(item.size_mib for item in buffers if _is_for_anybody(item))
    for sleep in found:
        mine = [item for item in buffers if item.lender == sleep.host]
        lent = sum(item.size_mib for item in mine)
        if all(map(_is_for_anybody, mine)) and free - lent > lent:
            return sleep
    return None


def _is_for_anybody(item: Buffer) -> bool:
    return item.is_free and item.admitted and not item.leaving and item.promised_to is None
