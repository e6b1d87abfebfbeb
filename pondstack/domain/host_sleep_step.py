"""What a host's sleep does next, decided from what is seen of the host. Pure: pondstack.controller.sleep acts.

The order is the point: Nova places nothing there before it lends, its keys are in escrow before it is suspended, and
its memory is its own again before Nova may place servers there. All of it compares states, so that the next leader goes
on wherever the last one ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pondstack.domain.host_sleep import DISABLED_REASON, HostSleep, SleepState
from pondstack.domain.power import PowerMode, mode_of

_S = SleepState
MOST_NAMED = 5


class Act(StrEnum):
    """What is to be done, besides writing down where the sleep is.

    DISABLE, ENABLE change the compute service in Nova; LEND, RECLAIM the memory that it lends; SUSPEND is a command to
    its agent, and END has that refuse it from now on; WAKE calls it, by the bus or out of band, and RESET cycles its
    power; FENCE takes from the rack what it served.
    """

    WAIT = "wait"
    DISABLE = "disable"
    LEND = "lend"
    SUSPEND = "suspend"
    END = "end"
    WAKE = "wake"
    RESET = "reset"
    RECLAIM = "reclaim"
    ENABLE = "enable"
    FENCE = "fence"


class Service(NamedTuple):
    """The compute service of a host in Nova."""

    enabled: bool
    disabled_reason: str = ""


class PowerWord(NamedTuple):
    """What an agent says of its newest transition. `mine`: it is of this sleep. `state`: entering, failed, woken."""

    state: str = ""
    reason: str = ""
    mine: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a host. What a state does not need is not looked at.

    `servers`: what Nova or Placement has on it. `lend`: why its lend waits, None: none is under way; `lend_ended`: how
    much was lent at its end, and why less. `waiting_keys`: free buffers without keys in escrow, of lenders that have
    borrowers. `power` None: its agent is silent; `waker`: the process that can be called answers. `reserved_mib`: what
    Placement has as lent; `report_age`: of the newest report, in seconds. `silent_for`: which borrower lost its link,
    "": none did, or another one has it. `can_reset`: its power can be cycled out of band.
    """

    seconds: float = 0.0
    service: Service | None = None
    servers: tuple[str, ...] = ()
    lend: str | None = None
    lend_ended: tuple[int, str] | None = None
    lent_mib: int = 0
    incarnation: str = ""
    waiting_keys: int = 0
    power: PowerWord | None = None
    waker: bool = False
    reserved_mib: int = 0
    report_age: float = 0.0
    silent_for: str = ""
    can_reset: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """See [sleep]. Times in seconds."""

    lend_seconds: float = 600.0
    suspend_seconds: float = 120.0
    confirm_seconds: float = 15.0
    wake_seconds: float = 300.0
    retry_seconds: float = 10.0
    deeper_driver: str = ""
    deeper_seconds: float = 3600.0


class Step(NamedTuple):
    """`state`: the one to be in, the present one to stay. `ending` and what follows: see Work. None: as it is."""

    act: Act
    state: SleepState
    reason: str = ""
    ending: str | None = None
    lent_mib: int | None = None
    incarnation: str | None = None
    called: bool = False
    was_reset: bool | None = None
    deeper: str | None = None
    driver: str | None = None
    ringers: tuple[str, ...] | None = None
    called_by: str | None = None


def decide(item: HostSleep, seen: Seen, limits: Limits) -> Step:
    """Return the next step of a sleep that is open."""
    return _DECISIONS[item.state](item, seen, limits)


def _disabling(item: HostSleep, seen: Seen, _limits: Limits) -> Step:
    if seen.service is None:
        reason = f"Nova knows no compute service of host {item.host}"
        return Step(Act.WAIT, _S.ENABLING, reason, _S.FAILED)
    if seen.servers:
        return Step(Act.WAIT, _S.ENABLING, occupied(item.host, seen.servers), _S.FAILED)
    if seen.service.enabled or (item.work.disabled_by and seen.service.disabled_reason == item.work.disabled_by):
        return Step(Act.DISABLE, _S.DISABLING)
    return Step(Act.WAIT, _S.LENDING)


def occupied(host: str, servers: tuple[str, ...]) -> str:
    """Return why a host with servers is not suspended, with the first of them."""
    more = f" and {len(servers) - MOST_NAMED} more" if len(servers) > MOST_NAMED else ""
    return f"servers are on host {host}: {', '.join(servers[:MOST_NAMED])}{more}; move them away first"


def _lending(item: HostSleep, seen: Seen, limits: Limits) -> Step:
    if seen.servers:
        return Step(Act.WAIT, _S.RECLAIMING, occupied(item.host, seen.servers), _S.FAILED)
    if seen.service is not None and seen.service.enabled:
        reason = f"the compute service of host {item.host} was enabled meanwhile"
        return Step(Act.WAIT, _S.RECLAIMING, reason, _S.FAILED)
    if item.work.mib == 0 or not mode_of(item.driver).serves:
        return Step(Act.WAIT, _S.SUSPENDING, lent_mib=0)
    late = seen.seconds > limits.lend_seconds
    if seen.lend is not None:
        if late:
            reason = f"it does not lend after {seen.seconds:.0f} s: {seen.lend or 'under way'}"
            return Step(Act.WAIT, _S.RECLAIMING, reason, _S.FAILED)
        return Step(Act.WAIT, _S.LENDING, seen.lend)
    if seen.lend_ended is None:
        return Step(Act.LEND, _S.LENDING)
    if not seen.lent_mib:
        return Step(Act.WAIT, _S.RECLAIMING, f"it lends nothing: {seen.lend_ended[1]}", _S.FAILED)
    if seen.waiting_keys and not late:
        return Step(Act.WAIT, _S.LENDING, f"keys of {seen.waiting_keys} buffers are not in escrow yet")
    return Step(Act.WAIT, _S.SUSPENDING, lent_mib=seen.lent_mib, incarnation=seen.incarnation)


def _suspending(item: HostSleep, seen: Seen, limits: Limits) -> Step:
    mode, word = mode_of(item.driver), seen.power
    if word is not None and word.mine and word.state == "failed":
        return Step(Act.WAIT, _S.WAKING, f"it cannot sleep by {item.driver}: {word.reason}", _S.FAILED)
    if word is not None and word.mine and word.state == "woken":
        return Step(Act.WAIT, _S.WAKING, "it woke by itself")
    if _fell_asleep(mode, seen, limits):
        return Step(Act.WAIT, _S.ASLEEP)
    if seen.seconds > limits.suspend_seconds:
        reason = f"it did not fall asleep by {item.driver} within {limits.suspend_seconds:.0f} s"
        return Step(Act.WAIT, _S.WAKING, reason, _S.FAILED)
    if word is not None and not word.mine:
        return Step(Act.SUSPEND, _S.SUSPENDING)
    return Step(Act.WAIT, _S.SUSPENDING)


def _fell_asleep(mode: PowerMode, seen: Seen, limits: Limits) -> bool:
    """Return whether a host that was told to is asleep: by its waker's word, or else its agent's lasting silence."""
    if mode.wakes_by_bus:
        return seen.waker and seen.power is None
    return seen.power is None and min(seen.seconds, seen.report_age) > limits.confirm_seconds


def _asleep(_item: HostSleep, seen: Seen, limits: Limits) -> Step:
    if seen.report_age + limits.confirm_seconds < seen.seconds:
        return Step(Act.WAIT, _S.WAKING, "its agent reports: it woke by itself")
    if seen.silent_for:
        reason = f"it does not serve any more: {seen.silent_for} has lost it, and its waker does not answer"
        return Step(Act.FENCE, _S.LOST, reason)
    return Step(Act.WAIT, _S.ASLEEP)


def _waking(item: HostSleep, seen: Seen, limits: Limits) -> Step:
    word = seen.power
    if word is not None and word.state != "entering":
        by = f"woken by {item.work.called_by}" if item.work.called_by else ""
        return Step(Act.END, _S.RECLAIMING, item.reason if item.work.ending else by)
    late = seen.seconds > limits.wake_seconds
    if late and seen.can_reset and not item.work.was_reset:
        return Step(Act.RESET, _S.WAKING, "it did not wake: its power is cycled, what it lent is lost", was_reset=True)
    if seen.seconds >= item.work.calls * limits.retry_seconds:
        return Step(Act.WAKE, _S.WAKING, _not_awake(item, seen) if late else item.reason, called=True)
    return Step(Act.WAIT, _S.WAKING, item.reason)


def _not_awake(item: HostSleep, seen: Seen) -> str:
    return f"it is called for {seen.seconds:.0f} s and does not wake; look at host {item.host}, or fence it"


def _lost(item: HostSleep, _seen: Seen, _limits: Limits) -> Step:
    return Step(Act.WAIT, _S.LOST, item.reason)


def _reclaiming(item: HostSleep, seen: Seen, _limits: Limits) -> Step:
    kept = item.reason if item.work.ending else ""
    if seen.lent_mib or seen.lend is not None:
        return Step(Act.RECLAIM, _S.RECLAIMING, kept, lent_mib=seen.lent_mib)
    if seen.reserved_mib:
        waits = f"nova-compute of host {item.host} has not said in Placement yet that its memory is back"
        return Step(Act.WAIT, _S.RECLAIMING, kept or waits, lent_mib=0)
    if item.work.deeper and not item.is_deeper:
        return Step(Act.WAIT, _S.SUSPENDING, lent_mib=0, incarnation="", driver=item.work.deeper)
    return Step(Act.WAIT, _S.ENABLING, kept, lent_mib=0)


def _enabling(item: HostSleep, seen: Seen, _limits: Limits) -> Step:
    service = seen.service
    ours = service is not None and not service.enabled and service.disabled_reason == DISABLED_REASON
    if ours and not item.work.kept_disabled:
        return Step(Act.ENABLE, _S.ENABLING, item.reason)
    return Step(Act.WAIT, SleepState(item.work.ending or _S.AWAKE), item.reason)


_DECISIONS: Mapping[SleepState, Callable[[HostSleep, Seen, Limits], Step]] = {
    _S.DISABLING: _disabling,
    _S.LENDING: _lending,
    _S.SUSPENDING: _suspending,
    _S.ASLEEP: _asleep,
    _S.WAKING: _waking,
    _S.RECLAIMING: _reclaiming,
    _S.ENABLING: _enabling,
    _S.LOST: _lost,
}
