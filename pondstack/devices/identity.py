"""Identity of a pool device: its UUID follows from its serial, so that it survives the loss of every store."""

import uuid

NAMESPACE = uuid.UUID("5f0b6f6e-70d5-4d0c-9c3a-706f6e647374")
"""Namespace of all UUIDs that pondstack derives. Never change it: pools would become strangers to Placement."""


def pool_uuid(serial: str) -> str:
    """Return the UUID of the pool device with this serial; also the UUID of its Placement resource provider."""
    return str(uuid.uuid5(NAMESPACE, serial))
