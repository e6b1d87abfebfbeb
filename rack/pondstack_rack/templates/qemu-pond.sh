#!/bin/sh
# The emulator of the libvirt hosts' guests: QEMU, with CPU-less nodes on the slices that this host's agent attached.
host=$$(hostname)
exec ${pondstack_qemu} --state-dir ${root}/hosts/$$host/agent --host "$$host" --qemu ${root}/bin/qemu-tcg -- "$$@"
