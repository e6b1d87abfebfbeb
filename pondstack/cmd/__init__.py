"""Entry points: one process each, oslo.service's threading backend first."""
