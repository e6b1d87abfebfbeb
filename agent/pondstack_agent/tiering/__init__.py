"""Tiering by the kernel between local and pool memory (TPP): settings of one host, written, read back, restored."""

from pondstack_agent.tiering.tiering import Tiering

__all__ = ["Tiering"]
