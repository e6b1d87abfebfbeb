#!/bin/sh
# QEMU as pondstack-qemu starts it; see the named file for what TCG needs.
exec ${python} -S -E ${tcg_qemu} /usr/bin/qemu-system-x86_64 "$$@"
