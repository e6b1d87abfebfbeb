#!/usr/bin/env bash
# Builds what the emulated hosts of tests/hardware are made of, once, and again when its inputs change.
#
# In HARDWARE (default ./.hardware): `root`, a Debian trixie root folder with CXL and RDMA tools, the full kernel, QEMU of
# trixie-backports (runs from outside and for guests of the hosts), libvirt, a venv with the pinned third-party packages
# of the agent, with pytest and hypothesis for tests that run in a host, and one that adds those of Nova; `root.img`, the
# same as a disk; `vmlinuz` and `initrd`. Our own code is not in it: each test run installs its wheel. Installs nothing
# on the machine. Environment: HARDWARE, VENV (default ./.venv), LOG.
set -euo pipefail
cd "$(dirname "$0")/.."
HARDWARE=${HARDWARE:-$PWD/.hardware}
VENV=${VENV:-$PWD/.venv}
mkdir -p "$HARDWARE"
HARDWARE=$(cd "$HARDWARE" && pwd)
LOG=${LOG:-$HARDWARE/build.log}
say() { printf '  %-11s %s\n' "$1" "$2"; }
die() { printf 'building the emulated hosts failed: %s\n  log: %s\n' "$1" "$LOG" >&2; exit 1; }
# shellcheck source=tools/debian.sh
. tools/debian.sh

release=trixie python=3.13
# python3-venv brings the pip that installs our wheel, busybox-static the initrd's shell.
packages=python3,python3-venv,cxl,daxctl,ndctl,numactl,kmod,mount,procps,iproute2,busybox-static,cpio,e2fsprogs
# pyverbs must be of the same release as the libraries of rdma-core: the distribution's, never PyPI's.
packages+=,python3-pyverbs,ibverbs-providers,ibverbs-utils,perftest
# Nova's host: libvirtd as on the rack, qemu-img, and libvirt's Python module, which PyPI has as source only.
packages+=,libvirt-daemon,libvirt-daemon-driver-qemu,libvirt-clients,qemu-utils,python3-libvirt
# What the initrd loads, to get at the root disk.
modules=(virtio_pci virtio_blk ext4)
image_size=3G

requirements=$("$VENV/bin/python" -c '
import configparser
setup = configparser.ConfigParser()
setup.read("setup.cfg")
print(setup["options"]["install_requires"].strip())
print(*(line for line in setup["options.extras_require"]["test"].split("\n") if line.startswith(("pytest", "hypothesis"))), sep="\n")') || die "reading setup.cfg; run tools/setup.sh first"
nova=$(grep -E '^nova==' constraints.txt)
want=$(cat constraints.txt tools/hardware.sh - <<<"$requirements" | sha256sum)
fresh() { [ "$(cat "$HARDWARE/stamp" 2>/dev/null || true)" = "$want" ]; }
# Each host that runs holds this lock, shared: what it runs from does not change below it.
exec 9>"$HARDWARE/lock"
wait_for_lock() { flock -n "$@" || { say waiting "for another build, or for hosts that run from ${HARDWARE/#$PWD\//}"; flock "$@"; }; }
wait_for_lock -s 9
if fresh; then exit 0; fi
wait_for_lock -x 9
if fresh; then exit 0; fi

: >"$LOG"
[ "$(id -u)" = 0 ] || die "needs root (mmdebstrap, chroot): run it as root"
PATH=$PATH:/usr/sbin:/sbin
for tool in mmdebstrap mke2fs cpio xz; do
    command -v "$tool" >/dev/null || die "no $tool: run tools/setup.sh"
done
new=$HARDWARE/new root=$HARDWARE/new/root
clean() { rm -rf --one-file-system "$new"; }
trap clean EXIT
clean
mkdir -p "$new"

# shellcheck source=/dev/null
. /etc/os-release
mirror=$(debian_sources "$VERSION_CODENAME" | debian_mirror "$VERSION_CODENAME")
[ -n "$mirror" ] || die "no apt source for $VERSION_CODENAME main: add one to /etc/apt/sources.list"
apt_line() { echo "deb [signed-by=$debian_key] $mirror $1 main"; }

say root "Debian $release with QEMU of $release-backports, in ${HARDWARE/#$PWD\//}/root"
# The kernel is unpacked, not installed: it needs neither an initramfs of Debian's nor a boot loader. The lists are
# there until the hooks are done. Its one dependency of that name is the versioned package.
# shellcheck disable=SC2016
kernel_hook='cd "$1/tmp" && p=$(chroot "$1" apt-cache depends linux-image-amd64 | sed -n "s/^ *Depends: \(linux-image-.*\)/\1/p" | head -n1) &&
    chroot "$1" sh -c "cd /tmp && apt-get -qq -o APT::Sandbox::User=root download $p" && dpkg -x "$p"_*.deb "$1" && rm "$p"_*.deb'
# In a mount namespace of its own: whatever ends it, none of the mounts that it makes is left.
unshare --mount mmdebstrap --mode=root --variant=apt --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="chroot \"\$1\" apt-get -qq -y --no-install-recommends -t $release-backports install qemu-system-x86" \
    --customize-hook="$kernel_hook" \
    "$release" "$root" "$(apt_line "$release")" "$(apt_line "$release-backports")" >>"$LOG" 2>&1 || die mmdebstrap
version=$(basename "$root"/usr/lib/modules/*)
chroot "$root" depmod "$version" >>"$LOG" 2>&1 || die depmod
mv "$root/boot/vmlinuz-$version" "$new/vmlinuz"

say python "venv of Python $python with the agent's packages, pinned by constraints.txt"
chroot "$root" python3 -m venv /opt/pondstack >>"$LOG" 2>&1 || die "python3 -m venv"
site=$root/opt/pondstack/lib/python$python/site-packages
# From outside, as the machine is configured: the root has neither its certificates nor its settings. uv, for pip would
# judge markers such as python_version by its own Python.
"$VENV/bin/uv" pip install -q --link-mode copy --target "$site" --python-version "$python" \
    --python-platform x86_64-manylinux_2_40 --only-binary :all: -c constraints.txt -r - <<<"$requirements" >>"$LOG" 2>&1 ||
    die "installing the Python packages"
chroot "$root" /opt/pondstack/bin/pip check >>"$LOG" 2>&1 || die "packages that do not fit Python $python"
# Where each host mounts our code, installed from the wheel of the run.
echo "/opt/code/lib/python$python/site-packages" >"$site/pondstack-code.pth"
mkdir -p "$root/opt/code"
# The packages of the distribution that the venv sees.
for path in "$root"/usr/lib/python3/dist-packages/{pyverbs,libvirt.py,libvirtmod.*.so}; do
    ln -s "${path#"$root"}" "$site/"
done
chroot "$root" /opt/pondstack/bin/python -c 'import libvirt, pyverbs.cmid' >>"$LOG" 2>&1 ||
    die "pyverbs or libvirt does not fit Python $python"

say nova "venv of nova-compute: what Nova adds to those packages"
chroot "$root" python3 -m venv --without-pip /opt/nova >>"$LOG" 2>&1 || die "python3 -m venv"
nova_site=$root/opt/nova/lib/python$python/site-packages
installed=$("$VENV/bin/uv" pip freeze -q --path "$site") || die "listing the agent's packages"
# Without ovs, which comes as source only (no host has Open vSwitch), and numpy, which only a proxy of Nova's imports.
"$VENV/bin/uv" pip compile -q --python-version "$python" --python-platform x86_64-manylinux_2_40 -c constraints.txt \
    --no-annotate --no-header --no-emit-package ovs --no-emit-package numpy - <<<"$nova" 2>>"$LOG" | grep -vxFf <(echo "$installed") >"$new/nova.txt" ||
    die "resolving Nova's packages"
"$VENV/bin/uv" pip install -q --link-mode copy --target "$nova_site" --python-version "$python" \
    --python-platform x86_64-manylinux_2_40 --only-binary :all: --no-deps -r "$new/nova.txt" >>"$LOG" 2>&1 ||
    die "installing Nova's packages"
# What was installed from outside starts the Python of outside.
rm -r "$new/nova.txt" "$nova_site/bin"
# The agent's packages come after Nova's, our code last.
echo "import site; site.addsitedir('/opt/pondstack/lib/python$python/site-packages')" >"$nova_site/pondstack.pth"
chroot "$root" /opt/nova/bin/python -c 'import libvirt, nova.virt.libvirt.driver' >>"$LOG" 2>&1 || die "Nova does not fit Python $python"

# Compiled once here: under emulation that takes minutes.
chroot "$root" /opt/pondstack/bin/python -m compileall -q -j2 /opt/pondstack/lib /opt/nova/lib /usr/lib/python3 "/usr/lib/python$python" >>"$LOG" 2>&1 || true

say initrd "Linux $version"
initrd=$new/initrd.d
mkdir -p "$initrd"/{bin,dev,proc,modules,root}
cp "$root/usr/bin/busybox" "$initrd/bin/"
for name in "${modules[@]}"; do
    chroot "$root" modprobe -S "$version" --show-depends "$name" || die "modprobe $name"
done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' >"$new/modules"
while read -r path; do
    name=$(basename "$path")
    case "$name" in *.xz) xz -dc "$root$path" >"$initrd/modules/${name%.xz}" ;; *) cp "$root$path" "$initrd/modules/" ;; esac
    echo "/bin/busybox insmod /modules/${name%.xz}"
done <"$new/modules" >"$new/load"
cat >"$initrd/init" <<INIT
#!/bin/busybox sh
# Mounts the root disk, our code, and hands over to the init that comes with the code.
stop() { echo "initrd: \$1" >/dev/console; /bin/busybox poweroff -f; }
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
$(cat "$new/load")
/bin/busybox mount -t ext4 -o noatime /dev/vda /root || stop "no root disk"
/bin/busybox mount -t ext4 -o ro /dev/vdb /root/opt/code || stop "no disk with our code"
/bin/busybox umount /proc
/bin/busybox umount /dev
exec /bin/busybox switch_root /root /opt/code/tests/hardware/guest/init || stop "no init"
INIT
chmod 755 "$initrd/init"
(cd "$initrd" && find . | cpio --quiet -o -H newc | gzip -1) >"$new/initrd" || die cpio
rm -rf "$initrd" "$new/modules" "$new/load"

say image "${HARDWARE/#$PWD\//}/root.img"
mke2fs -q -t ext4 -d "$root" -L root "$new/root.img" "$image_size" >>"$LOG" 2>&1 || die mke2fs

rm -rf "$HARDWARE"/{stamp,root,root.img,vmlinuz,initrd}
mv "$new"/* "$HARDWARE"/
printf '%s' "$want" >"$HARDWARE/stamp"
