"""What plans are decided by: [consolidation], in its place what was set at run time, and what one plan asks for."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from oslo_config import cfg

from pondstack.consolidation.decision.decider import check
from pondstack.consolidation.decision.settings import Settings
from pondstack.domain.consolidation_limits import ConsolidationLimits
from pondstack.domain.energy import profile_of
from pondstack.domain.errors import BadRequest

NAMES = Settings.names() - {"step_seconds", "idle_percent", "asleep_percent"}
"""Those that an operator chooses; the others follow from them."""


class PlanSettings:
    """One leader's. `limits`: reads what is set at run time."""

    def __init__(self, conf: cfg.ConfigOpts, limits: Callable[[], ConsolidationLimits]) -> None:
        self._conf, self._limits = conf, limits

    def of(self, changes: Mapping[str, Any]) -> Settings:
        """Return those of a plan that asks for `changes`. Raises BadRequest."""
        group = self._conf.consolidation
        options = {name: getattr(group, name) for name in NAMES}
        settings = Settings.from_record(options | self._limits().given | dict(changes))
        unknown = sorted(set(changes) - NAMES)
        if unknown:
            raise BadRequest(f"a plan has no setting {', '.join(unknown)}; there are {', '.join(sorted(NAMES))}")
        check(settings)
        if settings.least_awake < (hosts := self.least_awake()):
            raise BadRequest(
                f"a plan cannot leave {settings.least_awake} hosts awake where {hosts} are to stay so; lower that "
                "first: openstack memory consolidation set --least-awake"
            )
        profile = profile_of(settings.power_profile, group.power_percent)
        asleep = profile.asleep(str(self._conf.sleep.driver))
        return replace(settings, idle_percent=profile.idle_percent, asleep_percent=asleep)

    def least_awake(self) -> int:
        """Return how many hosts stay awake while any plan is carried out."""
        given = self._limits().least_awake
        return int(self._conf.consolidation.least_awake) if given is None else given
