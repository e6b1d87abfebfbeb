"""Shapes of values that come over RPC and are kept in columns: no more than every database's column holds. Pure."""

from pondstack.domain.shape import Nullable, Number, Shape, Text, Whole

MOST = 2**31 - 1
"""The greatest integer of a column of 32 bits."""
MIB: Shape = Whole(0, MOST)
"""Of one guest or request."""
AGE_SECONDS: Shape = Number(-1e9, 1e9)
"""Thirty years: it leads to a moment that a column holds."""
UUID: Shape = Text(36)
METRIC: Shape = Text(32)
NODE: Shape = Nullable(Whole(0, 1023))
"""Of a guest."""
READINGS: Shape = Whole(0, MOST)
