"""Pages of a VM in the memory of several lenders, and in a mirror on local storage, so that no page is ever lost.

Zombieland 4.4 (an allocation is backed by several lenders) and 4.5 (every write is mirrored to local storage).
Knows nothing of the ledger, the agents or the RPC: who lends what is told by `RemotePages.add` and `reclaim`.
"""
