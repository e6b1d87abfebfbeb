"""Histories of hosts that are put to sleep and woken, by operators and by consolidation plans."""
