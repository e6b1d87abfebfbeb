"""What a job is to replay, and with which settings."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from pondstack.domain.errors import BadRequest
from pondstack.planner.energy.systems import HISTORIES, SYSTEMS
from pondstack.planner.job import bounds
from pondstack.planner.settings import VARIANTS, Settings


class Source(StrEnum):
    """CLOUD: the history of the cloud that the controllers serve. GENERATED: the synthetic trace that ships."""

    CLOUD = "cloud"
    GENERATED = "generated"


RANGES: Mapping[str, tuple[float, float]] = {
    "window_days": (0.01, 3650),
    "servers": (1, 100_000),
    "days": (1, 60),
    "trace_seed": (0, 2**31 - 1),
    "sockets_per_host": (1, 64),
}
"""Of what an order has beside settings."""
ONLY_OF: Mapping[str, Source] = {
    "window_days": Source.CLOUD,
    "sockets_per_host": Source.CLOUD,
    "servers": Source.GENERATED,
    "days": Source.GENERATED,
    "trace_seed": Source.GENERATED,
}


@dataclass(frozen=True, slots=True)
class Order:
    """`window_days`: how far back the cloud's history goes. `servers`, `days`, `trace_seed`: of what is generated."""

    source: Source
    window_days: float = 30.0
    sockets_per_host: int = 2
    servers: int = 20_000
    days: int = 14
    trace_seed: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> "Order":
        """Return the order of a request; raises BadRequest with what is wrong, and what would be right."""
        unknown = sorted(set(given) - {item.name for item in fields(cls)})
        if unknown:
            raise BadRequest(f"a planner job has no {', '.join(unknown)}")
        source = given.get("source", Source.CLOUD)
        if source not in tuple(Source):
            raise BadRequest(f"source={source!r} is wrong; use {', '.join(Source)}")
        values: dict[str, Any] = {"source": Source(source)}
        for name in (name for name in RANGES if name in given):
            values[name] = _number(name, given[name], Source(source))
        settings = given.get("settings", {})
        if not isinstance(settings, Mapping):
            raise BadRequest(f"settings={settings!r} is wrong; it must be an object of settings by name")
        found = cls(**values, settings=bounds.checked(settings))
        _settings(found.settings)
        return found

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Order":
        """Return what a row keeps; raises BadRequest where this release has other bounds."""
        return cls.checked(record)

    def to_record(self) -> dict[str, Any]:
        """Return it as JSON has it: settings that are lists as lists, and nothing that goes with the other source."""
        others = [name for name, source in ONLY_OF.items() if source is not self.source]
        record = {name: value for name, value in asdict(self).items() if name not in others}
        lists = {name: list(value) if isinstance(value, tuple) else value for name, value in self.settings.items()}
        return {**record, "source": str(self.source), "settings": lists}

    @property
    def parts(self) -> int:
        """How many parts the replay has at the most: fewer where the cloud has too few sockets for a pool size."""
        found = _settings(self.settings)
        kinds = len(found.policies) * len(found.topologies) * len(found.pool_sockets)
        kinds += len(VARIANTS) if "pond" in found.policies else 0
        return len(found.seeds) * (1 + kinds * len(found.pool_shares) + len(HISTORIES) * len(SYSTEMS))

    def command(self) -> str:
        """Return the command that asks for the same again."""
        words = ["openstack", "memory", "planner", "run", "--source", str(self.source)]
        for name, source in ONLY_OF.items():
            if source is self.source:
                words += [f"--{name.replace('_', '-')}", f"{getattr(self, name):g}"]
        for name, value in self.settings.items():
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += ["--set", f"{name}={text}"]
        return shlex.join(words)


def _number(name: str, value: Any, source: Source) -> Any:
    least, most = RANGES[name]
    if ONLY_OF[name] is not source:
        raise BadRequest(f"{name} goes with the source {ONLY_OF[name]}, and this is of {source}")
    kinds = (int, float) if name == "window_days" else (int,)
    if type(value) not in kinds or not least <= value <= most:
        kind = "number" if float in kinds else "whole number"
        raise BadRequest(f"{name}={value!r} is wrong; it must be a {kind} from {least:g} to {most:g}")
    return value


def _settings(given: Mapping[str, Any]) -> Settings:
    try:
        return Settings(**given)
    except (TypeError, ValueError) as error:
        raise BadRequest(str(error)) from error
