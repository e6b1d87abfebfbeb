"""`make robustness PLANS=58`: controllers, agents, nova-compute are killed at each step of consolidation plans.

On a rack of its own: real services, two libvirt hosts with a real guest. Loads are SYNTHETIC, sleep is EMULATED. The
last lines are the table of the steps and a verdict; exits 0 only when every target holds. PONDSTACK_TEST_RACK=DIR uses
the running rack there.
"""

import sys

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from pondstack_rack.layout import Sizes  # noqa: E402 (threading first)
from pondstack_rack.rack import Rack  # noqa: E402
from tests.robustness import on_rack  # noqa: E402
from tests.robustness.mitigations.rack import Processes  # noqa: E402
from tests.robustness.plans import report  # noqa: E402
from tests.robustness.plans.plan import PLANS_JUDGED, make_plan  # noqa: E402
from tests.robustness.plans.rack import PlanRack  # noqa: E402
from tests.robustness.plans.run import Runner  # noqa: E402


def run(rack: Rack, processes: Processes, seed: int, count: int, say: on_rack.Say, early: on_rack.Early) -> report.Run:
    """Carry out so many plans."""
    return Runner(rack, processes, make_plan(seed, count), say).run(seed, early)


COMMAND = on_rack.Command(
    "plans", PLANS_JUDGED, "consolidation plans, each with a death", PlanRack, Sizes(2, 1, 4), run, report
)

if __name__ == "__main__":
    sys.exit(on_rack.main(COMMAND, __doc__.partition("\n")[0]))
