"""One run: a guest that verifies its memory, half of it remote, while a plan of events befalls all that it needs."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pondstack_rack.wait import wait_until
from tests.robustness.brokers import Broker
from tests.robustness.databases import Store
from tests.robustness.extension.faults import KINDS
from tests.robustness.extension.pages import PageMeter, Pages
from tests.robustness.extension.plan import Step, make_plan
from tests.robustness.extension.rack import SECONDS, ExtendedRack

EVENTS_PER_MINUTE = 6

Show = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """The same ones give the same plan."""

    minutes: float
    seed: int
    events: int = 0
    """0: as many as belong to the time."""
    rest_us: int = 0
    """Of the guest's threads after 16 accesses each."""

    @property
    def steps(self) -> list[Step]:
        """What happens."""
        return make_plan(self.seed, self.events or max(1, round(self.minutes * EVENTS_PER_MINUTE)))

    @property
    def command(self) -> str:
        """What does the same again."""
        events = f" EVENTS={self.events}" if self.events else ""
        return f"make torture-pager MINUTES={self.minutes:g} SEED={self.seed}{events} GUEST=rack"


@dataclass(frozen=True, slots=True)
class Event:
    """One that happened. `seconds`: from its end until an evicted page came again."""

    kind: str
    seconds: float


@dataclass
class Result:
    """What came of it."""

    options: Options
    events: list[Event] = field(default_factory=list)
    pages: Pages = field(default_factory=Pages)
    """While the guest worked."""
    counts: dict[str, int] = field(default_factory=dict)
    """The guest's own, of the same time; wrong words also of a look at all of them at its end."""
    seconds: float = 0.0
    disagreements: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)


def run(options: Options, folder: Path, broker: Broker, store: Store, show: Show = lambda _line: None) -> Result:
    """Run in `folder`, which keeps the logs; `show` hears of each event. Raises what keeps it from recovering."""
    result, begun = Result(options), time.monotonic()
    rack = ExtendedRack(folder, broker, store, options.seed, options.rest_us)
    meter = PageMeter(lambda: rack.plane_lives, rack.view)
    try:
        rack.start()
        show(f"started after {time.monotonic() - begun:.0f} s")
        rack.guest.fill()
        show(f"filled after {time.monotonic() - begun:.0f} s")
        with meter.looking():
            _work(rack, meter, result, show)
        result.leftovers = rack.release()
    finally:
        rack.close()
    return result


def _work(rack: ExtendedRack, meter: PageMeter, result: Result, show: Show) -> None:
    """Have the guest work while all happens, and end."""
    meter.look()
    before, begun = meter.total, time.monotonic()
    rack.guest.begin()
    whole = result.options.minutes * 60
    for step in result.options.steps:
        _wait_until(begun + step.at * whole)
        result.events.append(_strike(rack, meter, step))
        show(f"{time.monotonic() - begun:5.0f} s  {step.kind}")
    _wait_until(begun + whole)
    result.seconds = time.monotonic() - begun
    result.disagreements = _settled(rack)
    rack.guest.stop()
    meter.look()
    result.pages = meter.total - before
    result.counts = rack.guest.finish()


def _strike(rack: ExtendedRack, meter: PageMeter, step: Step) -> Event:
    """Have an event happen, wait until evicted pages come again, and until everything serves."""
    meter.look()
    KINDS[step.kind](rack, random.Random(step.seed))
    struck, asked = time.monotonic(), meter.total.asked
    if not wait_until(lambda: meter.total.asked > asked or rack.guest.process.poll() is not None, SECONDS, 0.02):
        raise RuntimeError(f"no page came to the guest within {SECONDS:.0f} s of: {step.kind}; {rack.view()}")
    if rack.guest.process.poll() is not None:
        raise RuntimeError(
            f"the guest ended after: {step.kind}; it printed {rack.guest.process.communicate()[0][-2000:]}"
        )
    event = Event(step.kind, time.monotonic() - struck)
    rack.heal()
    return event


def _settled(rack: ExtendedRack) -> list[str]:
    """Wait until ledger, agent and data plane agree; return in what they do not when the time is over."""
    found: list[str] = []

    def agree() -> bool:
        found[:] = rack.disagreements()
        return not found

    wait_until(agree, SECONDS, 0.5)
    return found


def _wait_until(moment: float) -> None:
    threading.Event().wait(max(0.0, moment - time.monotonic()))
