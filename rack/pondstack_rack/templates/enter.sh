#!/bin/sh
# Runs a command inside the libvirt host ${host}, such as: ${enter} virsh list
exec nsenter --target "$$(cat ${directory}/holder)" --mount --uts -- "$$@"
