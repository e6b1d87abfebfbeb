"""`make bench-extension`: RAM extension beside swap, as in Zombieland's tables and the hybrid pool's figure."""
