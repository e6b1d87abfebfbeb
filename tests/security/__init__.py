"""Attacks that stay: what each party on the rack's bus must not be able to do to another."""
