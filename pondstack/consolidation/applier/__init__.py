"""Carries plans out: each action with its pre-condition, execution, post-condition and reversal."""
