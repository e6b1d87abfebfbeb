#!/bin/sh -e
# Holds the mount and UTS namespaces of the libvirt host ${host}: what libvirt calls its own lies below ${directory}.
hostname ${host}
for path in etc/libvirt var/lib/libvirt var/cache/libvirt var/log/libvirt run; do
    mount --bind ${directory}/$$path /$$path
done
mount --bind ${directory}/hosts /etc/hosts
# A guest's disk has the same path on every host, as Nova's live migration wants it.
mount --bind ${directory}/nova/instances ${root}/instances
echo $$$$ > ${directory}/holder
exec sleep infinity
