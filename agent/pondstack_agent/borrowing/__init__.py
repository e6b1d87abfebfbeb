"""Borrower side of lent memory: links to lenders, kept open, and what leaves them again (Zombieland 4.4, 4.5)."""
