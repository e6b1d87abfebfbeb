"""Placement's claims on lent memory, as Nova makes them for an instance: a part of the host, and lent memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from keystoneauth1.exceptions import HttpError

from pondstack.controller.lending.inventory import PROVIDER
from pondstack.domain.lending import REMOTE_CLASS
from pondstack_rack.cloud_client import Cloud, gone
from pondstack_rack.wait import wait_until

SECONDS = 30.0
"""What was just lent is in Placement's inventory within this time."""


@contextmanager
def claimed(cloud: Cloud, consumer: str, host: str, mib: int) -> Iterator[None]:
    """Have a consumer claim lent memory on a host meanwhile."""
    body = {
        "allocations": {
            PROVIDER: {"resources": {REMOTE_CLASS: mib}},
            cloud.fake_hosts()[host]: {"resources": {"MEMORY_MB": 64}},
        },
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        "project_id": uuid4().hex,
        "user_id": uuid4().hex,
    }

    def claim() -> bool:
        try:
            cloud.placement.put(f"/allocations/{consumer}", json=body)
        except HttpError as error:
            if error.http_status not in (400, 409):
                raise
            return False
        return True

    assert wait_until(claim, SECONDS), f"Placement admits no claim of {mib} MiB of lent memory"
    try:
        yield
    finally:
        gone(cloud.placement.delete, f"/allocations/{consumer}")
