"""What this scheduler process decides splits from, refreshed in the background: room, predictor, known splits.

The splits of instances come as what changed since the last look. Of the room, what this process has split and nobody
has claimed yet is taken away here; what other processes have, as far as they have told the controller. Two of them may
still promise the last slices twice; Placement admits one of them, and see retry.py for the other.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import nova.conf
from oslo_log import log as logging

from pondstack.domain.allowance import Allowance
from pondstack.domain.errors import BadRequest
from pondstack.domain.known_split import KnownSplit
from pondstack.domain.project_settings import ProjectSettings
from pondstack.domain.room import PendingSplits, PoolRoom
from pondstack.domain.sizing import SplitPredictor, StaticShare
from pondstack.domain.units import DEFAULT_SLICE_MIB
from pondstack.prediction.serving import make_predictor
from pondstack.rpc.wire import SplitView
from pondstack_nova import controller_client
from pondstack_nova.scheduler.per_process import PerProcess
from pondstack_nova.scheduler.refreshed import Refreshed

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

CALL_TIMEOUT_SECONDS = 5.0

RISKED_SECONDS = 60.0
"""What an instance was split with is known to the controller by then; or it was not used, or was not told in time."""

Ask = Callable[[int, int, bool, str], SplitView]
"""Asks the controller by epoch, version, whether it must be of this moment, and the predictor that is here."""


@dataclass(frozen=True, slots=True)
class SplitBasis:
    """What a decision needs, at one moment. `pending`: what others have split and nobody has claimed, in MiB.

    `budget`: what the models may still risk, None: no model decides, or the controller is of the former release.
    `projects`: what operators have set, by project; none from a controller of the former release.
    `control`: the control group, {}: none.
    """

    predictor: SplitPredictor
    slice_mib: int = DEFAULT_SLICE_MIB
    rooms: tuple[PoolRoom, ...] = ()
    pending: Mapping[str, int] = field(default_factory=dict)
    known: Mapping[str, KnownSplit] = field(default_factory=dict)
    budget: Allowance | None = None
    projects: Mapping[str, ProjectSettings] = field(default_factory=dict)
    control: Mapping[str, object] = field(default_factory=dict)


class Risked:
    """Instances that this process split by a model's word and that the controller does not know yet; thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._items: dict[str, tuple[str, int, float]] = {}

    def add(self, consumer_uuid: str, version: str, instances: int) -> None:
        """Note a request, in place of an older one of this consumer; 0 takes it back."""
        with self._lock:
            self._items.pop(consumer_uuid, None)
            if instances:
                self._items[consumer_uuid] = version, instances, self._clock()

    def settle(self, known: Mapping[str, KnownSplit]) -> None:
        """Forget what the controller knows, or will never hear of."""
        oldest = self._clock() - RISKED_SECONDS
        with self._lock:
            self._items = {
                uuid: item for uuid, item in self._items.items() if item[2] >= oldest and not _decided(known.get(uuid))
            }

    def left(self, budget: Allowance | None, besides: str) -> Allowance | None:
        """Return what a budget leaves after these, but for one consumer."""
        if budget is None:
            return None
        with self._lock:
            items = [item for uuid, item in self._items.items() if uuid != besides]
        return budget.less(sum(budget.cost(version) * instances for version, instances, _ in items))


def _decided(known: KnownSplit | None) -> bool:
    return known is not None and known.remembered is not None


class SplitSource:
    """Keeps what one controller's epoch told, and asks for what is new. For one thread."""

    def __init__(self, ask: Ask, pending: PendingSplits, risked: Risked, clock: Callable[[], float]) -> None:
        self._ask = ask
        self._pending = pending
        self._risked = risked
        self._clock = clock
        self._epoch = self._version = 0
        self._known: dict[str, KnownSplit] = {}
        self._about: Mapping[str, object] = {}
        self._predictor_version = ""
        self._predictor: SplitPredictor = StaticShare()

    def fetch(self, now: bool) -> SplitBasis:
        """Ask, page by page. Raises what the bus does, and then has learnt of no splits."""
        asked_at = self._clock()
        epoch, version, known = self._epoch, self._version, self._known
        while True:
            view = self._ask(epoch, version, now, self._predictor_version)
            self._take_predictor(view)
            known = _merged({} if view.full or view.epoch != epoch else known, view)
            epoch, version = view.epoch, view.version
            if not view.more:
                break
        self._epoch, self._version, self._known = epoch, version, known
        self._pending.settle(frozenset(view.claimed), asked_at - view.age_seconds)
        self._risked.settle(known)
        budget = None if view.model_budget is None else Allowance.from_wire(view.model_budget)
        return SplitBasis(
            self._predictor,
            view.slice_mib,
            view.rooms,
            view.pending,
            known,
            budget=budget,
            projects=view.projects,
            control=view.control,
        )

    def _take_predictor(self, view: SplitView) -> None:
        about = view.predictor
        if not about or about == self._about:
            return  # {}: what is here is what decides
        self._about, self._predictor_version = about, view.predictor_version
        try:
            self._predictor = make_predictor(about)
        except BadRequest as error:
            LOG.error("The last known predictor decides on: %s", error)


def _merged(known: dict[str, KnownSplit], view: SplitView) -> dict[str, KnownSplit]:
    """Return `known` with the changes; a copy, for who reads meanwhile."""
    if not view.splits:
        return known
    known = dict(known)
    for item in view.splits:
        if item.gone:
            known.pop(item.instance_uuid, None)
        else:
            known[item.instance_uuid] = item
    return known


class SplitCache(Refreshed[SplitBasis]):
    """The latest basis of this process's decisions, and what it has split (`pending`)."""

    def __init__(
        self,
        ask: Ask,
        *,
        interval_seconds: float,
        max_age_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pending = PendingSplits()
        self.risked = Risked(clock)
        self.clock = clock
        super().__init__(
            "split view",
            SplitSource(ask, self.pending, self.risked, clock).fetch,
            interval_seconds=interval_seconds,
            max_age_seconds=max_age_seconds,
            clock=clock,
        )


def _ask_the_controller() -> Ask:
    api = controller_client.lazy_api()

    def ask(epoch: int, version: int, now: bool, predictor: str) -> SplitView:
        return api().split_view(
            epoch=epoch, version=version, now=now, predictor=predictor, timeout_seconds=CALL_TIMEOUT_SECONDS
        )

    return ask


def _make() -> SplitCache:
    return SplitCache(
        _ask_the_controller(),
        interval_seconds=CONF.pondstack.snapshot_interval_seconds,
        max_age_seconds=CONF.pondstack.snapshot_max_age_seconds,
    )


_process: PerProcess[SplitCache] = PerProcess(_make)
cache = _process.get
reset = _process.reset
