"""Deaths in the middle of live migrations of a guest with remote memory, on the rack of all tests.

Three: of each data plane, at the moment when all depends on it, and an abort. By night others, from a new seed. More of
them, on a rack of their own: `make robustness MOVES=20 SEED=1`.
"""

import pytest

from pondstack_rack.rack import Rack
from tests.fixtures.seeds import seed
from tests.robustness.mitigations.rack import Processes
from tests.robustness.moves.plan import Act, Kill, Step, Victim, make_plan
from tests.robustness.moves.report import text
from tests.robustness.moves.run import Runner

pytestmark = [pytest.mark.rack, pytest.mark.timeout(3600)]

FIRST = [
    Kill(0, Step.FETCHING, Victim.SOURCE_PLANE, Act.KILL, wait_seconds=0.0, away_seconds=1.0),
    Kill(1, Step.CONNECTED, Victim.DESTINATION_PLANE, Act.KILL, wait_seconds=0.0, away_seconds=1.0),
    Kill(2, Step.CONNECTED, Victim.OPERATOR, Act.ABORT, wait_seconds=0.0, away_seconds=0.0),
]
BY_NIGHT = 8


def judge(rack: Rack, processes: Processes, plan: list[Kill], number: int) -> None:
    """Do it, and see that no promise broke and nothing is left."""
    found = Runner(rack, processes, plan, print).run(number)
    print(text(found))
    assert [item.broken for item in found.outcomes if item.broken] == []
    assert list(found.unclean) == []
    assert any(item.end for item in found.outcomes), "no step was met"


def test_a_data_plane_dies_at_either_end_and_an_abort(rack: Rack, processes: Processes) -> None:
    judge(rack, processes, FIRST, 0)


@pytest.mark.night
def test_others_die(rack: Rack, processes: Processes) -> None:
    chosen = seed(1)
    print(f"seed {chosen}; the same again: make robustness MOVES={BY_NIGHT} SEED={chosen}")
    judge(rack, processes, make_plan(chosen, BY_NIGHT), chosen)
