"""Live migrations of a guest, ordinary ones and by reference, counted on the wire: `make bench-migration`."""
