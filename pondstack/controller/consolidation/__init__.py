"""Consolidation in a leader: reads its inputs, decides plans, has them carried out."""
