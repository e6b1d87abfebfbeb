"""What our strategies have in common: no data source of Watcher's, the memory service, and its hosts by their nodes."""

import abc
from collections.abc import Mapping
from typing import Any

from oslo_log import log
from watcher.decision_engine.strategy.strategies import base

from pondstack.osc.client import Document
from pondstack_watcher import goal, planner
from pondstack_watcher.service import MemoryService

LOG = log.getLogger(__name__)


class MemoryStrategy(base.BaseStrategy, metaclass=abc.ABCMeta):
    """Decides by what the memory service knows; `_decide` fills the solution and returns its indicators."""

    display_name_text = ""

    def __init__(self, config: Any, osc: Any = None) -> None:
        super().__init__(config, osc)
        self.planner = planner.NAME

    @classmethod
    def get_goal_name(cls) -> str:
        """Return the name of our goal."""
        return goal.NAME

    @classmethod
    def get_display_name(cls) -> str:
        """Return what people read."""
        return cls.display_name_text

    @classmethod
    def get_translatable_display_name(cls) -> str:
        """Return the same, for Watcher to translate."""
        return cls.display_name_text

    @classmethod
    def get_config_opts(cls) -> list[Any]:
        """Return none: what is measured is measured by the memory service."""
        return []

    def pre_execute(self) -> None:
        """Raise what Watcher raises where its model is missing or stale."""
        self._pre_execute()

    def do_execute(self, audit: Any = None) -> None:
        """Fill the solution."""
        del audit
        service = MemoryService(self.osc.session)
        nodes = self.compute_model.get_all_compute_nodes()
        hosts = {item["provider_uuid"]: item for item in service.hosts() if item["provider_uuid"] in nodes}
        left_out = {
            node.hostname: "the memory service knows no such host" for uuid, node in nodes.items() if uuid not in hosts
        }
        enabled = sum(node.status == "enabled" for node in nodes.values())
        found = self._decide(service, hosts, left_out)
        for name, reason in sorted(left_out.items()):
            LOG.info("%s takes no part: %s", name, reason)
        self.solution.set_efficacy_indicators(compute_nodes_count=enabled, left_out_count=len(left_out), **found)

    def post_execute(self) -> None:
        """Tell the model that the solution is of."""
        self.solution.model = self.compute_model

    @abc.abstractmethod
    def _decide(
        self, service: MemoryService, hosts: Mapping[str, Document], left_out: dict[str, str]
    ) -> Mapping[str, int]:
        """Fill the solution. `hosts`: by the UUID of their node; `left_out`: by name why, to be added to."""
