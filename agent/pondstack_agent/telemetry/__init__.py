"""What the agent measures of its guests from outside, and how it tells the controller (doc/source/telemetry.md)."""
