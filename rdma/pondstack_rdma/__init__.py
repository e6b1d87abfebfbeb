"""One-sided memory transport: a lender registers memory, a borrower reads and writes it (Zombieland 4.1).

Knows nothing of the ledger, the agents or the RPC; of the layers below it uses the errors of pondstack.domain.
"""
