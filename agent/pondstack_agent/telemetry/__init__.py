"""What the agent measures of its guests from outside, and how it reports that (doc/source/admin/telemetry.md)."""
