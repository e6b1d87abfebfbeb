"""Renderings that several nouns share."""

from datetime import UTC, datetime


def time(seconds: float) -> str:
    """Return a time of the ledger (seconds since the epoch) as ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
