"""Idle hosts become memory: what is decided, apart from what is done."""
