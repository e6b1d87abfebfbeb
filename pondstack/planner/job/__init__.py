"""A replay as a job of the controllers: what may be asked, the process that replays, and who follows it."""
