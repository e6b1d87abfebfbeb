"""The process that keeps the pages of one consumer in borrowed memory and in a mirror, and serves them over NBD."""
