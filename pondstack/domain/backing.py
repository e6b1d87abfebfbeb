"""Kinds of what a guest's pool memory is on its host (pondstack.rpc.wire.Backing)."""

FILE = "file"
"""QEMU has it as a shared file."""
NODE = "node"
"""QEMU has memory of its own, bound to a NUMA node of the host."""
UNKNOWN = ""
"""An agent of a former release reported none."""
