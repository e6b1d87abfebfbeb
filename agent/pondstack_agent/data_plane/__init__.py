"""The agent's end of the host's data plane: how it is asked, what it answers, what it needs (pondstack-data-plane)."""
