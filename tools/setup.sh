#!/usr/bin/env bash
# Installs what the rack and the tests need: missing Debian packages, then a venv with pinned Python packages.
#
# Idempotent and quick when nothing is missing. Adds no apt source to the system (the newer libvirt and QEMU of
# bookworm-backports come through a package list of our own), touches no package that is already there, and starts no
# service. Environment: VENV (default ./.venv), LOG (default ./.rack-setup.log).
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=${VENV:-$PWD/.venv}
LOG=${LOG:-$PWD/.rack-setup.log}
say() { printf '  %-11s %s\n' "$1" "$2"; }
die() { printf 'setup failed: %s\n  log: %s\n' "$1" "$LOG" >&2; exit 1; }
: >"$LOG"
# shellcheck source=tools/debian.sh
. tools/debian.sh

[ "$(id -u)" = 0 ] || die "needs root (network namespaces, libvirt hosts, Debian packages): run it as root"
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}" = debian ] || die "this is ${PRETTY_NAME:-unknown}; Debian 12 or 13 is needed"

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

stable=() newer=()
while read -r package where _; do
    case "$package" in ''|'#'*) continue ;; esac
    installed "$package" && continue
    if [ "$where" = @backports ] && [ "$VERSION_CODENAME" = bookworm ]; then newer+=("$package"); else stable+=("$package"); fi
done <tools/packages.txt

# A package list of our own, made at the first need of it: no apt source is added to the system.
work=
apt_options=()
clean() { if [ -n "$work" ]; then rm -rf "$work"; fi; if [ "${made_policy:-no}" = yes ]; then rm -f "$policy"; fi; }
trap clean EXIT
prepare_apt() {
    [ -z "$work" ] || return 0
    work=$(mktemp -d)
    mkdir -p "$work/lists/partial" "$work/archives/partial"
    local main
    debian_sources "$VERSION_CODENAME" >"$work/sources.list"
    main=$(debian_mirror "$VERSION_CODENAME" <"$work/sources.list")
    [ -n "$main" ] || die "no apt source for $VERSION_CODENAME main: add one to /etc/apt/sources.list"
    if [ "$VERSION_CODENAME" = bookworm ]; then
        echo "deb [signed-by=$debian_key] $main bookworm-backports main" >>"$work/sources.list"
    fi
    apt_options=(-q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$work/lists" -o "Dir::Cache::archives=$work/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
        -o APT::Sandbox::User=root)
    apt-get "${apt_options[@]}" update >>"$LOG" 2>&1 || die "apt-get update"
}

if [ $((${#stable[@]} + ${#newer[@]})) -gt 0 ]; then
    say packages "${stable[*]} ${newer[*]}"
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then      # no daemon starts because its package arrives; removed again at the end
        printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod 755 "$policy"; made_policy=yes
    fi
    prepare_apt
    dpkg-query -W -f '${Package}\n' | sort >"$work/before"
    export DEBIAN_FRONTEND=noninteractive
    install=(apt-get "${apt_options[@]}" -y -o Dpkg::Options::=--force-confold --no-install-recommends)
    if [ ${#newer[@]} -gt 0 ]; then
        "${install[@]}" -t bookworm-backports install "${newer[@]}" >>"$LOG" 2>&1 || die "apt-get install ${newer[*]}"
    fi
    if [ ${#stable[@]} -gt 0 ]; then
        "${install[@]}" install "${stable[@]}" >>"$LOG" 2>&1 || die "apt-get install ${stable[*]}"
    fi
    # What just came would start at the next boot: the rack starts its own servers, and the machine keeps its habits.
    mapfile -t arrived < <(dpkg-query -W -f '${Package}\n' | sort | comm -13 "$work/before" -)
    if [ ${#arrived[@]} -gt 0 ] && command -v systemctl >/dev/null; then
        mapfile -t units < <(dpkg -L "${arrived[@]}" | sed -n 's|.*/systemd/system/\([^/@]*\.\(service\|socket\|timer\)\)$|\1|p')
        if [ ${#units[@]} -gt 0 ]; then systemctl disable "${units[@]}" >>"$LOG" 2>&1 || true; fi
    fi
fi

# The venv is made of Debian's own python, not of whatever python3 comes first in PATH.
stamp=$VENV/.pondstack-setup
want=$(cat setup.py rdma/native/*.[ch] rdma/native/*/*.[ch] setup.cfg rack/setup.cfg pyproject.toml constraints.txt tools/setup.sh | sha256sum)
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$want" ]; then
    say python "venv in ${VENV/#$PWD\//}, pinned by constraints.txt"
    if [ ! -x "$VENV/bin/uv" ]; then
        /usr/bin/python3 -m venv "$VENV" >>"$LOG" 2>&1 || die "python3 -m venv"
        "$VENV/bin/pip" -q install -c constraints.txt uv >>"$LOG" 2>&1 || die "pip install uv"
    fi
    "$VENV/bin/uv" pip install -q --python "$VENV/bin/python" -c constraints.txt -e '.[postgresql,test]' -e ./rack >>"$LOG" 2>&1 ||
        die "installing the Python packages"
    "$VENV/bin/pondstack-manage" nova link >>"$LOG" 2>&1 || die "pondstack-manage nova link"
    # Compiled once here; otherwise each service compiles Nova again where PYTHONDONTWRITEBYTECODE is set.
    "$VENV/bin/python" -m compileall -q -j2 "$VENV/lib" >>"$LOG" 2>&1 || true
    printf '%s' "$want" >"$stamp"
fi

# The guests' kernel, and its modules for disks: unpacked into the venv, never installed.
kernel=$VENV/share/pondstack/vmlinuz
modules=$VENV/share/pondstack/modules
if [ ! -s "$kernel" ] || [ ! -s "$modules/virtio_blk.ko" ]; then
    say kernel "Debian's cloud kernel for guests, in ${kernel/#$PWD\//}"
    prepare_apt
    package=$(apt-cache "${apt_options[@]}" depends linux-image-cloud-amd64 2>>"$LOG" |
        awk '$1 == "Depends:" && $2 ~ /^linux-image/ && !seen {print $2; seen = 1}')
    (cd "$work" && apt-get "${apt_options[@]}" download "$package" && dpkg -x "$package"_*.deb kernel) >>"$LOG" 2>&1 ||
        die "apt-get download ${package:-linux-image-cloud-amd64}"
    drivers=$(echo "$work"/kernel/lib/modules/*/kernel/drivers)
    install -D -m 644 -t "$modules" "$drivers"/virtio/virtio{,_ring,_pci,_pci_modern_dev,_pci_legacy_dev}.ko \
        "$drivers/block/virtio_blk.ko"
    install -D -m 644 "$work"/kernel/boot/vmlinuz-* "$kernel"
fi
# Galera's state transfer: two scripts of mariadb-server, whose service is not wanted; unpacked into the venv as well.
wsrep=$VENV/share/pondstack/wsrep
if [ ! -s "$wsrep/wsrep_sst_rsync" ] && ! command -v wsrep_sst_rsync >/dev/null; then
    say galera "MariaDB's state transfer scripts, in ${wsrep/#$PWD\//}"
    prepare_apt
    (cd "$work" && apt-get "${apt_options[@]}" download mariadb-server && dpkg -x mariadb-server_*.deb mariadb) >>"$LOG" 2>&1 ||
        die "apt-get download mariadb-server"
    install -D -m 755 -t "$wsrep" "$work"/mariadb/usr/bin/wsrep_sst_common "$work"/mariadb/usr/bin/wsrep_sst_rsync
fi
# The compiler of AppArmor's profiles, and what those include: nothing here is to be confined, so it is unpacked as well.
apparmor=$VENV/share/pondstack/apparmor
if [ ! -x "$apparmor/sbin/apparmor_parser" ]; then
    say apparmor "the compiler of profiles, in ${apparmor/#$PWD\//}"
    prepare_apt
    (cd "$work" && apt-get "${apt_options[@]}" download apparmor && dpkg -x apparmor_*.deb apparmor) >>"$LOG" 2>&1 ||
        die "apt-get download apparmor"
    install -D -m 755 -t "$apparmor/sbin" "$(find "$work/apparmor" -name apparmor_parser -type f)"
    mkdir -p "$apparmor/etc" && cp -r "$work/apparmor/etc/apparmor.d" "$apparmor/etc/"
fi
say ready "$("$VENV/bin/python" --version), $(qemu-system-x86_64 --version | head -n1 | cut -d'(' -f1)"
