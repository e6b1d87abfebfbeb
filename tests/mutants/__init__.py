"""Planted faults: what the unit tests are worth. See the page on tests in the contributor's documentation."""
