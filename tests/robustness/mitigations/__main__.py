"""`make robustness MITIGATIONS=50`: agents, controllers, nova-compute, database killed at each step of mitigations.

On a rack of its own: real services, two libvirt hosts with real guests, two fake computes. The last lines are the table
of the steps and a verdict; exits 0 only when every target holds. PONDSTACK_TEST_RACK=DIR uses the running rack there.
"""

import sys

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from pondstack_rack.layout import Sizes  # noqa: E402 (threading first)
from pondstack_rack.rack import Rack  # noqa: E402
from tests.robustness import on_rack  # noqa: E402
from tests.robustness.mitigations import report  # noqa: E402
from tests.robustness.mitigations.rack import KilledRack, Processes  # noqa: E402
from tests.robustness.mitigations.run import SLICES, Runner  # noqa: E402


def run(rack: Rack, processes: Processes, seed: int, count: int, say: on_rack.Say, early: on_rack.Early) -> report.Run:
    """Do so many mitigations."""
    return Runner(rack, processes, seed, count, say).run(early)


COMMAND = on_rack.Command(
    "mitigations", 50, "kills, each in a mitigation", KilledRack, Sizes(2, 2, SLICES), run, report
)

if __name__ == "__main__":
    sys.exit(on_rack.main(COMMAND, __doc__.partition("\n")[0]))
