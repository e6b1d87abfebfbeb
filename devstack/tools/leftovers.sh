#!/usr/bin/env bash
# leftovers.sh DEST: lists what a node still has of pondstack after clean.sh, one a line; exits 1 when there is anything.
#
# The plugin's own checkout below DEST stays, as clean.sh leaves every repository and every package.
set -euo pipefail
cd /
dest=$1
found=$(
    find / -xdev \( -path /proc -o -path /sys -o -path /srv -o -path /tmp -o -path "$dest/pondstack" -o -path "$dest/.cache" \
        -o -path "$dest/data/venv" -o -path "$dest/logs" -o -path "$dest/tempest" \) -prune -o \
        \( -iname '*pondstack*' -o -iname '*qemu-pond*' -o -iname '*devstack@pond*' \) -print
    find /run \( -iname '*pondstack*' -o -iname '*devstack@pond*' \) -print
    sed -n '/pondstack/s/^/mount: /p' /proc/mounts | grep -v -e ' / ' -e ' /srv ' || true
    for folder in /proc/[0-9]*; do
        if tr '\0' ' ' <"$folder/cmdline" 2>/dev/null | grep -q 'pondstack-\(controller\|agent\|data-plane\|lender\|qemu\)\|pondstack_api'; then
            echo "process: $(tr '\0' ' ' <"$folder/cmdline")"
        fi
    done
    grep -l 'pondstack' /etc/libvirt/qemu.conf 2>/dev/null || true
)
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    exit 1
fi
