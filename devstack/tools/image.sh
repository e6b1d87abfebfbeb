#!/usr/bin/env bash
# image.sh KERNEL INIT TARGET: makes the rack's guest as an image that stack.sh uploads (kernel, initramfs, blank disk).
set -euo pipefail
kernel=$1 init=$2 target=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/bin" "$work/image"
cp /bin/busybox "$work/tree/bin/busybox"
install -m 755 "$init" "$work/tree/init"
(cd "$work/tree" && printf '.\nbin\nbin/busybox\ninit\n' | cpio --quiet -o -H newc | gzip -6) >"$work/image/pond-guest-initrd"
cp "$kernel" "$work/image/pond-guest-vmlinuz"
truncate -s 1M "$work/image/pond-guest.img"
tar -C "$work/image" -czf "$target" .
