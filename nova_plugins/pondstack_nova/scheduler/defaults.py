"""What a server of a flavor without `pond:` specs is treated as, and how much pool memory its project's may have.

What is nearer to the server decides: `pond:` specs of its flavor (then nothing here is asked), its project, the
aggregates that the request is bound to, [pondstack] default_policy. All of it is in this process's memory.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import nova.conf

from pondstack.domain.project_settings import NOTHING_SET, DefaultPolicy, ProjectSettings
from pondstack_nova.scheduler import aggregates, split_view

CONF = nova.conf.CONF

FIRST_SETTINGS_SECONDS = 0.5
"""How long a new process's requests for plain flavors, whose owners asked for nothing, wait for projects' settings."""


class Origin(StrEnum):
    """Who says what a plain flavor is treated as."""

    PROJECT = "the project"
    AGGREGATE = "the aggregate"
    OPTION = "[pondstack] default_policy"


@dataclass(frozen=True, slots=True)
class Default:
    """What a plain flavor is treated as, and by whose word."""

    policy: DefaultPolicy
    origin: Origin

    @property
    def pooled(self) -> bool:
        """Whether it is treated as with pond:policy=auto."""
        return self.policy is DefaultPolicy.AUTO


def mark(spec: Any, *, plain: bool) -> None:
    """Leave on a RequestSpec whether its flavor has no `pond:` specs."""
    spec._pondstack_plain = plain


def is_plain(spec: Any) -> bool:
    """Return what was left on a RequestSpec."""
    return bool(getattr(spec, "_pondstack_plain", False))


def of_request(spec: Any, settings: ProjectSettings) -> Default:
    """Return what a request for a plain flavor is treated as."""
    if settings.default_policy is not None:
        return Default(settings.default_policy, Origin.PROJECT)
    bound = aggregates.default_of(spec)
    if bound is not None:
        return Default(bound, Origin.AGGREGATE)
    return Default(DefaultPolicy(CONF.pondstack.default_policy), Origin.OPTION)


def settings_of(spec: Any, *, first_view_seconds: float) -> ProjectSettings:
    """Return what the operator set for a request's project, as the latest view has it, however old.

    `first_view_seconds`: how long from the process's first request on it waits for a view at all.
    """
    cache = split_view.cache()
    basis = cache.latest()[0] or cache.first(first_view_seconds)
    if basis is None:
        return NOTHING_SET
    return basis.projects.get(spec.project_id or "", NOTHING_SET)
