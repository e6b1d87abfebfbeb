"""Compiles profiles of AppArmor for emulated hosts: libvirt's of a guest, without and with our rule, and our own.

The emulated hosts have libvirt's files, and no compiler of profiles; that is unpacked beside the venv (tools/setup.sh).
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pondstack_rack.layout import share

ROOT = Path(__file__).resolve().parents[2]
RULE = ROOT / "etc" / "apparmor" / "libvirt-qemu"
PROFILE = ROOT / "etc" / "apparmor" / "pondstack-data-plane"


CODE = "/opt/code/{,**} r,\n/opt/code/bin/pondstack-qemu rmix,\n"
"""Where emulated hosts have what others have in /opt/pondstack, as an operator would add it."""


@dataclass(frozen=True)
class Policies:
    """Compiled profiles: of a guest, as libvirt has it and with our rule, and of the data plane."""

    stock: bytes
    with_rule: bytes
    data_plane: bytes


def compile_policies(libvirt: Path, guest: str, folder: Path) -> Policies:
    """Return the profiles. `libvirt`: a host's /etc/apparmor.d, with libvirt's files; `folder`: for what is made."""
    compiler, base = share("share/pondstack/apparmor"), folder / "apparmor.d"
    shutil.copytree(compiler / "etc" / "apparmor.d", base)
    shutil.copytree(libvirt, base, dirs_exist_ok=True)
    template = (base / "libvirt" / "TEMPLATE.qemu").read_text()
    made = base / "guest"
    made.write_text(template.replace("LIBVIRT_TEMPLATE", f"libvirt-{guest}"))

    def compiled(path: Path) -> bytes:
        features = base / "abi" / "3.0"
        words = ["--stdout", "--skip-cache", "--base", str(base), "--config-file", "/dev/null"]
        words += ["--kernel-features", str(features), "--policy-features", str(features), str(path)]
        return subprocess.run(
            [str(compiler / "sbin" / "apparmor_parser"), *words], stdout=subprocess.PIPE, check=True
        ).stdout

    stock = compiled(made)
    (base / "abstractions" / "libvirt-qemu.d").mkdir(exist_ok=True)
    (base / "local" / "pondstack-guests").write_text(CODE)
    shutil.copy(RULE, base / "abstractions" / "libvirt-qemu.d" / "pondstack")
    return Policies(stock, compiled(made), compiled(PROFILE))
