"""Guests, models and limits for the tests of the QoS monitor."""

from pondstack.domain.pool_guest import PoolGuest
from pondstack.domain.qos import Unknown
from pondstack.qos.judge import Limits
from pondstack.qos.pace import Rates
from pondstack.qos.sensitivity import Sensitivity, SlowdownModel

LIMITS = Limits(touched_percent=5.0, touched_mib=64, pdm_percent=5.0, unknown=Unknown.MITIGATE)
MANY = Rates(1000, 1000, 1000, 1000)


def guest(uuid="vm", touched=1024.0, **values):
    """A guest of 8 GiB, half of it pool memory; it has touched all of its local memory."""
    given = {"project_id": "p", "host": "host-1", "memory_mib": 8192, "pool_mib": 4096, "memory_untouched_mib": None}
    given |= {"untouched_mib": None if touched is None else 4096 - touched, "split_source": "untouched", **values}
    return PoolGuest(uuid, f"allocation of {uuid}", **given)


def says(slowdowns, threshold=5.0, version="li-1"):
    """What one model says, with one threshold for each PDM."""
    return Sensitivity((SlowdownModel(version, slowdowns, lambda _pdm: threshold),))
