"""Who borrows memory on this host, and what uses it: the host's remote-memory manager (Zombieland 4.2, 4.4)."""
