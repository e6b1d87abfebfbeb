"""Who speaks on the message bus: credentials, signed requests and replies, and who may call what."""
