"""Energy of a cloud by the way it is consolidated. Estimates by published power profiles."""
