"""Local-copy mitigation (Pond, sections 4.2 and 4.3): all pool pages of one running guest move to local memory, once.

`plan` and `room` decide, `guest` looks, `mover` and `privileged` act, `mitigations` keeps the order on disk.
"""
