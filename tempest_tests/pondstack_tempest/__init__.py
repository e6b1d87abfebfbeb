"""Tempest plugin of pondstack: tests of a running cloud through its public APIs. It imports none of pondstack."""
