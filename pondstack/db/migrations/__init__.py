"""Alembic's script folder: env.py and versions/NNNN_<what>.py, walked up by `pondstack-manage db sync`."""
