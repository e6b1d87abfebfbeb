"""What the agent needs of root's abilities, in processes of their own (oslo.privsep)."""
