"""Pool pages of running guests that are on another node than the pool's are moved back.

The kernel takes memory offline by moving what is in it to another node as long as there is one. All slices of a device
are one node, so a guest that stays may have pages in the slices of one that leaves; they end in memory that nobody
claimed. `plan` decides, `pages` looks and has the mover of mitigations move, the other way.
"""
