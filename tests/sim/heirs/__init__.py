"""Histories of live migrations by which slices become their destination's."""
