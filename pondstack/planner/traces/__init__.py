"""Where traces come from: a module for each format, a generator, and running clouds."""
