"""What is known of a VM with pool memory at one moment: what the QoS monitor judges. Pure."""

from dataclasses import dataclass

from pondstack.domain.telemetry import Source


@dataclass(frozen=True, slots=True)
class PoolGuest:
    """A VM's pool memory and what was seen of it; memory in MiB.

    `untouched_mib`: of its pool memory, None: nobody looked at all of its nodes, or too long ago.
    `memory_untouched_mib`: the least that was seen of all its memory. `split_source` "": what it was placed with is
    not known. `pdm_percent`: the slowdown that it tolerates, None: its split does not say. `migrating`: it has another
    allocation, too.
    """

    consumer_uuid: str
    allocation_uuid: str
    project_id: str
    host: str
    memory_mib: int
    pool_mib: int
    untouched_mib: float | None
    memory_untouched_mib: float | None = None
    split_source: str = ""
    model_version: str = ""
    pdm_percent: float | None = None
    source: str = Source.MEASURED
    migrating: bool = False

    @property
    def touched_mib(self) -> float | None:
        """Return what it has touched of its pool memory."""
        return None if self.untouched_mib is None else max(0.0, self.pool_mib - self.untouched_mib)

    @property
    def pool_share(self) -> float:
        """Return which share (0 to 1) of all that it touched is pool memory; 1 where that is not known."""
        touched = self.touched_mib
        if touched is None or self.memory_untouched_mib is None:
            return 1.0
        return min(1.0, touched / max(self.memory_mib - self.memory_untouched_mib, touched, 1.0))
