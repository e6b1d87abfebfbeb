"""Histories in which hosts and pools are removed, for a while or for ever."""
