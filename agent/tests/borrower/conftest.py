"""The hosts of the lender's tests."""

from ..lending.conftest import rack

__all__ = ["rack"]
