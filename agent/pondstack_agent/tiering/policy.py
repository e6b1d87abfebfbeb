"""What a host's tiering policy asks of the kernel: options in, attributes and values out. No effects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from oslo_config import cfg

from pondstack_agent.tiering.nodes import Nodes

AUTO = "interleave_auto"
WEIGHTS = "sys/kernel/mm/mempolicy/weighted_interleave"
AUTO_FILES = ("auto", "__auto_type")
"""Since 6.16 the kernel can set the weights by itself. Some kernels name the attribute after what `auto` means in C."""

_DEMOTION = {"off": "false", "on": "true"}
_PROMOTION = {"off": "0", "on": "2", "with_balancing": "3"}
_UP = ("2", "3")
_MOST_WEIGHT = 255


@dataclass(frozen=True, slots=True)
class Setting:
    """One attribute of the kernel: our name of it, its path below the root, the text that it has or shall have."""

    name: str
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Policy:
    """Options of group [tiering] as the kernel's texts; None: left alone. `weights`: of local and of pool nodes."""

    demotion: str | None = None
    promotion: str | None = None
    promote_limit: str | None = None
    watermark: str | None = None
    weights: tuple[int, int] | None = None

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Self:
        """Read the options; raises ValueError for weights that the kernel does not have."""
        options = conf.tiering
        return cls(
            _DEMOTION.get(options.demotion),
            _PROMOTION.get(options.promotion),
            str(options.promote_limit_mib_per_second or "") or None,
            str(options.watermark_scale_factor or "") or None,
            _weights(options.interleave),
        )

    def switched(self, on: bool | None) -> Self:
        """Return it with demotion and promotion on or off by an operator's order; None: as it is.

        What is off is written where the policy has it, and put back as it was before the agent where it has not.
        """
        if on is None:
            return self
        if on:
            up = self.promotion if self.promotion in _UP else _PROMOTION["on"]
            return replace(self, demotion=_DEMOTION["on"], promotion=up)
        return replace(self, demotion=_DEMOTION["off"], promotion=self.promotion and _PROMOTION["off"])

    @property
    def moves(self) -> bool:
        """Whether the kernel is to move pages between tiers."""
        return self.demotion == "true" or self.promotion in _UP

    def settings(self, nodes: Nodes, auto: str = "") -> Iterator[Setting]:
        """Return what is asked for on a host with these nodes. `auto`: the file of automatic weights, '' for none."""
        fixed = (
            ("demotion", "sys/kernel/mm/numa/demotion_enabled", self.demotion),
            ("watermark_scale_factor", "proc/sys/vm/watermark_scale_factor", self.watermark),
            (
                "promote_limit_mib_per_second",
                "proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
                self.promote_limit,
            ),
            # Last: room on the local nodes is there when the first pages come up.
            ("promotion", "proc/sys/kernel/numa_balancing", self.promotion),
        )
        for name, path, value in fixed:
            if value is not None:
                yield Setting(name, path, value)
        if self.weights is not None:
            if auto:
                yield Setting(AUTO, f"{WEIGHTS}/{auto}", "false")
            for weight, group in zip(self.weights, (nodes.local, nodes.pool), strict=True):
                for node in group:
                    yield Setting(f"interleave_node{node}", f"{WEIGHTS}/node{node}", str(weight))


def _weights(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    local, _, pool = text.partition(":")
    weights = int(local), int(pool)
    if not all(1 <= weight <= _MOST_WEIGHT for weight in weights):
        raise ValueError(f"[tiering] interleave is {text}; write N:M with 1 to {_MOST_WEIGHT} each, such as 5:1")
    return weights
