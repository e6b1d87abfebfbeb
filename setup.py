"""What setup.cfg cannot say: the extensions (shared memory, verbs, librdmacm's calls, CPU caches), and a program.

Optional at build time (without a compiler, without libibverbs-dev and librdmacm-dev, the program also without
libjansson-dev and libssl-dev, the wheel lacks them, with a warning) and at run time (shared memory works without its,
slower; verbs and pondstack-data-plane say what is missing). Limited API: one build serves Python 3.11 and later.
"""

import os
from collections.abc import Sequence
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_LINKS = ("links/address", "links/cm_attrs", "links/rc_conn")
"""What extensions share with the data plane."""

_FLAGS = ["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"]


def extension(name: str, *sources: str, libraries: Sequence[str] = ()) -> Extension:
    """Return one of rdma/native."""
    return Extension(
        f"pondstack_rdma.{name}",
        sources=[f"rdma/native/{source}" for source in sources],
        depends=[
            f"rdma/native/{header}.h" for header in ("cm_id", "operation", "pyobject", "transfers", "watch", *_LINKS)
        ],
        libraries=list(libraries),
        define_macros=[("Py_LIMITED_API", "0x030b0000")],
        extra_compile_args=_FLAGS,
        py_limited_api=True,
        optional=True,
    )


class Program(Extension):
    """A program of folders of rdma/native, which lies in the package beside the extensions."""

    def __init__(self, name: str, *folders: str, libraries: Sequence[str]) -> None:
        super().__init__(
            f"pondstack_rdma.{name}",
            sources=sorted(path for folder in folders for path in glob(f"rdma/native/{folder}/*.c")),
            depends=sorted(path for folder in folders for path in glob(f"rdma/native/{folder}/*.h")),
            libraries=list(libraries),
            extra_compile_args=_FLAGS,
            optional=True,
        )


class BuildNative(build_ext):
    """Builds programs as well as extensions."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return a program's own name, and an extension's with the suffix of its API."""
        programs = {name for each in self.extensions if isinstance(each, Program) for name in _names(each)}
        return os.path.join(*fullname.split(".")) if fullname in programs else super().get_ext_filename(fullname)

    def build_extension(self, ext: Extension) -> None:
        """Compile and link one."""
        if not isinstance(ext, Program):
            super().build_extension(ext)
            return
        objects = self.compiler.compile(
            ext.sources, output_dir=self.build_temp, extra_postargs=ext.extra_compile_args, depends=ext.depends
        )
        folder, name = os.path.split(self.get_ext_fullpath(ext.name))
        self.compiler.link_executable(objects, name, output_dir=folder, libraries=ext.libraries, target_lang="c")


def _names(program: Program) -> tuple[str, str]:
    """Return the names by which setuptools asks for it."""
    return program.name, program.name.rpartition(".")[2]


setup(
    cmdclass={"build_ext": BuildNative},
    ext_modules=[
        extension("_native", "shm_access.c", "operation.c", "watch.c"),
        extension("_cpu_cache", "cpu_cache.c"),
        extension("_verbs", "requester.c", "transfers.c", "operation.c", "links/rc_conn.c", libraries=["ibverbs"]),
        extension(
            "_cm",
            *("cm_channel.c", "cm_id.c", "links/address.c", "links/cm_attrs.c"),
            libraries=["rdmacm", "ibverbs"],
        ),
        Program(
            "pondstack-data-plane",
            *("block", "control", "handover", "links", "pager", "replacement", "store"),
            libraries=["rdmacm", "ibverbs", "jansson", "crypto", "pthread"],
        ),
    ],
)
