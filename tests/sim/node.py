"""A controller of a history: the real pondstack.controller.node.node.Node in a process that can be stopped anywhere."""

from typing import TYPE_CHECKING

from pondstack.controller.node import node as real

from .doubles import SimResources
from .kernel import Process

if TYPE_CHECKING:
    from .rack import Rack


class SimNode:
    """One controller process, from its start to its death; a restart makes a new one."""

    def __init__(self, rack: "Rack", name: str) -> None:
        self.name = name
        self.process: Process = rack.scheduler.process(name)
        resources = SimResources(rack, name, self.process)
        self.node = real.Node(resources.conf_of_node())  # type: ignore[arg-type]
        rack.scheduler.spawn(self.process, self.node.start)

    @property
    def epoch(self) -> int | None:
        """The epoch that this controller takes itself to lead with."""
        return self.node.candidate.epoch

    @property
    def leads(self) -> bool:
        """Whether it answers as the leader."""
        return self.process.alive and self.node.leader is not None
