"""Clusters of Dask and Ray on which joblib runs the parts of a sweep: `connected`."""

from pondstack.planner.backends.connection import ADDRESSES, connected

__all__ = ["ADDRESSES", "connected"]
