"""What runs inside OpenStack Watcher: a goal, strategies, a planner and actions that call the memory service's API."""
