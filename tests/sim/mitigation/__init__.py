"""Histories of mitigations: the real mitigator over a ledger, with doubles of Nova, Placement and agents, and faults.

They run in one thread without the kernel of the other histories: the mitigator waits for nobody, it comes again.
"""
