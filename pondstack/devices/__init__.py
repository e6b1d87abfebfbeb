"""Device side of the pools. Standard library only: the emulated head of a guest imports parts of it at each start."""

from pondstack.devices.identity import NAMESPACE, pool_uuid

__all__ = ["NAMESPACE", "pool_uuid"]
