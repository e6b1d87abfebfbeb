"""Replays a trace on sockets and pools, by the policies of production, compiled."""
