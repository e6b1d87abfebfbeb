"""How a host sleeps and is woken: power drivers, and the process that carries them out (pondstack-waker)."""
