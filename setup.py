"""What setup.cfg cannot say: the extensions, hot paths of shared memory and of verbs, and librdmacm's calls.

Optional at build time (without a compiler, or without libibverbs-dev and librdmacm-dev, the wheel lacks them, with a
warning) and at run time (shared memory works without its, slower; verbs says what is missing). Limited API: one build
serves Python 3.11 and all later ones.
"""

from collections.abc import Sequence

from setuptools import Extension, setup


def extension(name: str, *sources: str, libraries: Sequence[str] = ()) -> Extension:
    """Return one of rdma/native."""
    return Extension(
        f"pondstack_rdma.{name}",
        sources=[f"rdma/native/{source}" for source in sources],
        depends=[
            f"rdma/native/{header}.h"
            for header in ("cm_attrs", "cm_id", "operation", "pyobject", "rc_conn", "transfers", "watch")
        ],
        libraries=list(libraries),
        define_macros=[("Py_LIMITED_API", "0x030b0000")],
        extra_compile_args=["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        extension("_native", "shm_access.c", "operation.c", "watch.c"),
        extension("_verbs", "requester.c", "transfers.c", "operation.c", "rc_conn.c", libraries=["ibverbs"]),
        extension("_cm", "cm_channel.c", "cm_id.c", "cm_attrs.c", libraries=["rdmacm", "ibverbs"]),
    ]
)
