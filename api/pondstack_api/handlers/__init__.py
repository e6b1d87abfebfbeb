"""Handlers, one file per noun: a validated request in, a reply out."""
