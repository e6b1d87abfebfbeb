"""What is known of an instance's life, for training and for the features of the next one. Pure."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One instance, joined with its telemetry. Times are UTC; "" is unknown.

    `name_key`: hash of the name's pattern, never the name. `untouched_mib`: least memory that its guest had never
    touched so far, None where nothing was observed. `coverage`: share of its life that was observed, 0 to 1.
    """

    instance_uuid: str
    project_id: str
    flavor_name: str
    memory_mib: int
    vcpus: int
    image_os: str
    zone: str
    name_key: str
    created_at: datetime
    deleted_at: datetime | None
    untouched_mib: int | None
    coverage: float
