#!/usr/bin/env bash
# Builds the root disk of bench-extension's guests in the folder $1, once, and again when this file changes: programs of
# Debian packages, unpacked and never configured. Needs root. What the benchmark itself puts there is in /opt.
set -euo pipefail
cd "$(dirname "$0")/../../.."
built=$1
LOG=$built/build.log
mkdir -p "$built"
die() { printf 'building the guests of bench-extension failed: %s\n  log: %s\n' "$1" "$LOG" >&2; exit 1; }
# shellcheck source=tools/debian.sh
. tools/debian.sh
release=trixie
packages=python3,valkey-server,valkey-tools,sqlite3,base-files
want=$(sha256sum "bench/extension/guest/$(basename "$0")")
if [ "$(cat "$built/stamp" 2>/dev/null || true)" = "$want" ]; then exit 0; fi
: >"$LOG"
rm -rf --one-file-system "$built/root" "$built/stamp"
# shellcheck source=/dev/null
. /etc/os-release
mirror=$(debian_sources "$VERSION_CODENAME" | debian_mirror "$VERSION_CODENAME")
[ -n "$mirror" ] || die "no apt source for $VERSION_CODENAME main: add one to /etc/apt/sources.list"
unshare --mount mmdebstrap --mode=root --variant=extract --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$release" "$built/root" "deb [signed-by=$debian_key] $mirror $release main" >>"$LOG" 2>&1 || die mmdebstrap
printf '%s' "$want" >"$built/stamp"
