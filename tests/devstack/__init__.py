"""Tests of the DevStack plugin: every phase with recorded stand-ins; `python -m tests.devstack` prints the figures."""
