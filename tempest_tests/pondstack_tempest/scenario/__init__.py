"""Tests of what operators and tenants live through: guests, moves, failures."""
