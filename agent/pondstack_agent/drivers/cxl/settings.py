"""Options of group [cxl] that the driver uses at each attach and detach."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """`zero_on_host`: this host zeroes what it gives back, and what was given to it with content."""

    offline_attempts: int = 5
    offline_timeout_seconds: float = 30.0
    zero_on_host: bool = False
    system_cgroups: tuple[str, ...] = ()
