"""Hosts that sleep while their memory serves: the leader takes each through its steps, and wakes it."""
