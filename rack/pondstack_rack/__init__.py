"""The rack on one machine: a small real cloud with pondstack in it, under one folder, on loopback."""
