"""Whether the planner places a replay's servers as the rack did, and why not: `make replay COMPARE=planner`."""
