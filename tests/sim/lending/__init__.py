"""Histories of lent memory: hosts that lend to each other, sleep, die, and want their memory back."""
