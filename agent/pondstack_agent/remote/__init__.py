"""Who borrows memory on this host, and its page stores: the host's remote-memory manager (Zombieland 4.2, 4.4)."""
