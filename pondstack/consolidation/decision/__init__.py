"""Decides a plan over a snapshot. Pure: no I/O, no clock, no logging."""
