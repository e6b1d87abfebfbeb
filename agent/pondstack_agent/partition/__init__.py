"""The special-purpose memory partition (Pond, section 4.2): pool memory of a host is for guests that were given it."""

from pondstack_agent.partition.partition import Gap, Partition

__all__ = ["Gap", "Partition"]
