"""Kinds of what a guest's pool memory is on its host (pondstack.rpc.wire.Backing)."""

FILE = "file"
"""QEMU has it as a shared file, which all hosts of this machine see through one page cache."""
DEVDAX = "devdax"
"""QEMU has it as a shared file, which is the slices themselves (/dev/daxX.Y): each host has CPU caches of its own."""
NODE = "node"
"""QEMU has memory of its own, bound to a NUMA node of the host."""
SHARED = frozenset({FILE, DEVDAX})
"""What QEMU maps with share=on: a migration can leave it out (x-ignore-shared)."""
KINDS = (FILE, NODE, DEVDAX)
FORMER_KINDS = (FILE, NODE)
"""What a nova-compute knows that does not say what it knows."""
UNKNOWN = ""
"""An agent of a former release reported none."""
