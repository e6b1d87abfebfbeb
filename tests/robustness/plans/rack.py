"""The rack that plans are carried out on: two libvirt hosts, a fake compute, two controllers, as real processes."""

from pondstack_rack.rack import Rack

CONTROLLER = """
[ha]
# Who leads changes by the plan's kills, and not because a busy machine stands still for a second.
lease_seconds = 5
[consolidation]
# A run has more live migrations than an operator wants within an hour.
migrations_per_hour = 1000
"""
SLEEP = "suspend_seconds = 30\n"
"""A host whose agent died on the way to sleep is given up after that, and not after two minutes."""


class PlanRack(Rack):
    """A rack on which a plan that cannot go on ends within minutes."""

    def _configure(self) -> None:
        super()._configure()
        file = self.layout.etc / "pondstack.conf"
        file.write_text(file.read_text().replace("[sleep]\n", f"[sleep]\n{SLEEP}") + CONTROLLER)
