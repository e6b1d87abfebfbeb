"""What the planner's replay costs."""
