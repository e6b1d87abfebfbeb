"""`make robustness MOVES=20`: data planes, agents, controllers, nova-compute die in live migrations of remote memory.

On a rack of its own: real services, two libvirt hosts with a real guest, one host that lends. The last lines are the
table of the victims and a verdict; exits 0 only when every target holds. PONDSTACK_TEST_RACK=DIR uses the running rack
there.
"""

import sys

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from pondstack_rack.layout import Sizes  # noqa: E402 (threading first)
from pondstack_rack.rack import Rack  # noqa: E402
from tests.robustness import on_rack  # noqa: E402
from tests.robustness.mitigations.rack import Processes  # noqa: E402
from tests.robustness.moves import report  # noqa: E402
from tests.robustness.moves.plan import make_plan  # noqa: E402
from tests.robustness.moves.rack import MoveRack  # noqa: E402
from tests.robustness.moves.run import Runner  # noqa: E402


def run(rack: Rack, processes: Processes, seed: int, count: int, say: on_rack.Say, early: on_rack.Early) -> report.Run:
    """Do so many moves."""
    return Runner(rack, processes, make_plan(seed, count), say, loses_source=True).run(seed, early)


COMMAND = on_rack.Command("moves", 20, "live migrations, each with a death", MoveRack, Sizes(2, 1, 4), run, report)

if __name__ == "__main__":
    sys.exit(on_rack.main(COMMAND, __doc__.partition("\n")[0]))
