"""Borrower side of lent memory: which buffers this host has of whom, and what leaves them again (Zombieland 4.4, 4.5).

It keeps the books and reaches no lender: the links over which pages go are the data plane's.
"""
