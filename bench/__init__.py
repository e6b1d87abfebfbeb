"""Benchmarks: each prints its figures last, beside a peer or a floor of the same run, and exits 0 only on target."""

import warnings

# futurist imports eventlet where it finds it, and Nova's dependencies bring it. We run on native threads.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
