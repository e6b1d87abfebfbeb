"""Deaths in the middle of consolidation plans, on the rack of all tests, by night: from a new seed.

More of them, each step with each death, on a rack of their own: `make robustness PLANS=58 SEED=1`.
"""

import pytest

from pondstack_rack.rack import Rack
from tests.fixtures.seeds import seed
from tests.robustness.mitigations.rack import Processes
from tests.robustness.plans.plan import make_plan
from tests.robustness.plans.report import text
from tests.robustness.plans.run import Runner

pytestmark = [pytest.mark.rack, pytest.mark.night, pytest.mark.timeout(3600)]

BY_NIGHT = 8


def test_some_die(rack: Rack, processes: Processes) -> None:
    chosen = seed(1)
    print(f"seed {chosen}; the same again: make robustness PLANS={BY_NIGHT} SEED={chosen}")
    found = Runner(rack, processes, make_plan(chosen, BY_NIGHT), print).run(chosen)
    print(text(found))
    assert [item.broken for item in found.outcomes if item.broken] == []
    assert list(found.unclean) == []
    assert any(item.end for item in found.outcomes), "no step was met"
