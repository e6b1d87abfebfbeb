"""What setup.cfg cannot say: the one extension, of shared memory's hot path. Everything else is in setup.cfg.

Optional at build time (a machine without a compiler gets a wheel without it, with a warning) and at run time (shared
memory works without it, slower). Limited API: one build serves Python 3.11 and all later ones.
"""

from setuptools import Extension, setup

NATIVE = Extension(
    "pondstack_rdma._native",
    sources=["rdma/native/port.c"],
    define_macros=[("Py_LIMITED_API", "0x030b0000")],
    extra_compile_args=["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"],
    py_limited_api=True,
    optional=True,
)

setup(ext_modules=[NATIVE])
