"""One run: a rack on one database under traffic, struck by a plan of faults, its history judged at the end."""

import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.robustness.brokers import BROKERS, Broker
from tests.robustness.databases import STORES, Store
from tests.robustness.disk import Disk, mounted
from tests.robustness.final_state import read_journal, settled, settled_loans
from tests.robustness.history import History, Injected, Recorder
from tests.robustness.loans import take_back
from tests.robustness.model import Broken
from tests.robustness.network import networks
from tests.robustness.plan import Casualties, Counts, Step, make_plan
from tests.robustness.rack import CONTROLLERS, Rack
from tests.robustness.traffic import Pace, Traffic
from tests.robustness.validate import validate

RESUME_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is: the seed and these give the same plan and the same choices of every worker."""

    seed: int
    counts: Counts
    database: str = "mariadb"
    brokers: int = 1
    pace: Pace = field(default_factory=Pace)
    rpc: str = ""
    """Transport of [rpc]; empty: calls go over the broker alone."""

    @property
    def command(self) -> str:
        """What does the same again."""
        counts = self.counts
        numbers = {"KILLS": counts.kills, "PAUSES": counts.pauses, "OTHERS": counts.rare, "CUTS": counts.cuts}
        numbers |= {"DISKS": counts.disks, "SEED": self.seed, "BROKERS": self.brokers}
        words = (f"{name}={number}" for name, number in numbers.items())
        rpc = f" RPC={self.rpc}" if self.rpc else ""
        return f"make robustness {' '.join(words)} DATABASE={self.database}{rpc}"

    def plan(self) -> list[Step]:
        """Return the faults of the run."""
        casualties = Casualties(STORES[self.database].casualty, BROKERS[self.brokers].casualty)
        return make_plan(self.seed, self.counts, self.database, casualties)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run. `seconds`: how long the faults took in all."""

    options: Options
    history: History
    broken: list[Broken]
    seconds: float


Show = Callable[[int, str], None]


def run(
    options: Options,
    folder: Path,
    show: Show = lambda _done, _note: None,
    enough: Callable[[], bool] = lambda: False,
) -> Result:
    """Run in `folder`, which keeps the logs; `show` hears of each step, `enough` ends it early.

    Raises what keeps the rack from healing.
    """
    cut = CONTROLLERS if options.counts.cuts else ()
    with servers(options) as (broker, store, disk), networks(cut) as own:
        plan = options.plan()
        rack = Rack(folder, broker, store, own, disk, rpc=options.rpc)
        recorder = Recorder()
        try:
            rack.start()
            traffic = Traffic(rack, recorder, options.seed, options.pace)
            begun = time.monotonic()
            traffic.start()
            if recorder.wait_for_write_after(begun, RESUME_SECONDS) is None:
                raise RuntimeError("no write succeeds before the first fault")
            for done, step in enumerate(plan):
                if enough():
                    break
                show(done, step.fault.name)
                strike(rack, recorder, traffic, step)
            rack.wait_healthy()
            seconds = time.monotonic() - begun
            history = _finish(rack, recorder, traffic)
        finally:
            rack.stop()
    return Result(options, history, validate(history), seconds)


def strike(rack: Rack, recorder: Recorder, traffic: Traffic, step: Step) -> None:
    """Let one fault happen, wait for writes to resume, mend."""
    rack.wait_healthy()
    threading.Event().wait(step.after_seconds)
    name, host, leader = step.fault.name, step.fault.host, rack.leader()
    struck: list[Injected] = []
    mending: list[Callable[[], None]] = []
    ready = threading.Event()

    def now() -> None:
        struck.append(Injected(name, time.monotonic(), host, f"leader {leader}"))
        recorder.fault(struck[0])
        ready.set()

    def work() -> None:
        try:
            mending.append(step.fault.strike(rack, random.Random(step.seed), now))
        finally:
            ready.set()

    striking = threading.Thread(target=work, name="fault")
    striking.start()
    ready.wait()
    if not struck:
        raise RuntimeError(f"{name} could not be done; see the traceback above")
    traffic.probe(host)
    resumed = recorder.wait_for_write_after(struck[0].at, RESUME_SECONDS, host)
    striking.join()
    if not mending:
        raise RuntimeError(f"{name} went wrong half-way; see the traceback above")
    mending[0]()
    if resumed is None:
        raise RuntimeError(f"no write succeeds {RESUME_SECONDS:.0f} s after {name}")


def _finish(rack: Rack, recorder: Recorder, traffic: Traffic) -> History:
    traffic.quiet()
    held, lent = settled(rack, traffic.host, free=False), settled_loans(rack, free=False)
    traffic.drop()
    drained, lent_drained = settled(rack, traffic.host, free=True), settled_loans(rack, free=True)
    lent_drained = replace(lent_drained, returned=take_back(rack))
    traffic.end()
    history = recorder.history()
    history.lent, history.lent_drained = lent, lent_drained
    history.journal = read_journal(rack)
    history.held, history.drained = held, drained
    return history


@contextmanager
def servers(options: Options) -> Iterator[tuple[Broker, Store, Disk | None]]:
    """Start broker and database in folders of their own (short paths for their sockets), gone at the end."""
    place = Path(tempfile.mkdtemp(prefix="ps-rob-", dir="/tmp"))
    place.chmod(0o711)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        disk = stack.enter_context(mounted(place / "db")) if options.counts.disks else None
        broker, store = BROKERS[options.brokers](place / "mq"), STORES[options.database](place / "db")
        for server in (broker, store):
            stack.callback(server.stop)
            server.start()
        yield broker, store, disk
