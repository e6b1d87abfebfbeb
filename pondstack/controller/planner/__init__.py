"""Jobs of the planner in a leader: what operators ask for, and the thread that has one replayed after the other."""
