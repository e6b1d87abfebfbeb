"""`make bench-extension`: RAM extension beside swap, in Zombieland's tables and the hybrid pool's figure; see __main__."""
