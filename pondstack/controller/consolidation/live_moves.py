"""Which servers cannot be migrated live, as a leader knows it: by their flavors, and by what agents report."""

from collections import defaultdict
from collections.abc import Callable, Mapping

from pondstack.domain.backing import UNKNOWN
from pondstack.domain.live_move import may_stay, why_it_stays
from pondstack.domain.purpose import Purpose
from pondstack.domain.rack import RackView
from pondstack.domain.sizing import given_specs


class LiveMoves:
    """At one moment."""

    def __init__(self, rack: RackView) -> None:
        reported: dict[tuple[str, str], set[str]] = defaultdict(set)
        for host, report in rack.hosts.items():
            for item in report.attached:
                if item.get("purpose", Purpose.GUEST) == Purpose.GUEST:
                    reported[host, str(item.get("consumer_uuid"))].add(str(item.get("backing", UNKNOWN)))
        held = {
            (aged.item.host, aged.item.consumer_uuid)
            for aged in rack.allocations.values()
            if aged.item.purpose is Purpose.GUEST
        }
        self._backings = {key: {UNKNOWN} for key in held} | reported

    def why_it_stays(self, uuid: str, host: str, specs: Mapping[str, str]) -> str:
        """Return why a server is not migrated live off its host, "": it may be. `specs`: its flavor's."""
        return why_it_stays(given_specs(specs), self._backings.get((host, uuid), ()))


def why_it_stays_now(rack: Callable[[], RackView]) -> Callable[[str, str, Mapping[str, str]], str]:
    """Return LiveMoves.why_it_stays() of the moment at which it is called; only where it matters the ledger is read."""

    def judge(uuid: str, host: str, specs: Mapping[str, str]) -> str:
        return LiveMoves(rack()).why_it_stays(uuid, host, specs) if may_stay(given_specs(specs)) else ""

    return judge
