"""Calls through a server's memory: the client writes its request there, and fetches the reply from there.

The paradigm of RFP (Su et al., EuroSys 2017), which Zombieland 4.2 uses: to be read and written is cheaper for a server
than to read and write. Knows nothing of what a request means.
"""
