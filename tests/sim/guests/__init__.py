"""Histories in which Nova places guests on hosts that lend memory."""
