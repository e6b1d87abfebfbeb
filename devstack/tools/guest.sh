#!/usr/bin/env bash
# guest.sh DEVSTACK: on a stacked node, boots a zNUMA guest by the `openstack` client, reads its console, deletes it.
#
# HOST names the host that it boots on; without it the scheduler chooses. Exits 0 only when the guest had a node without
# CPUs of the flavor's pool memory, and when its slices were free again. VIRT_DRIVER=fake: there is no console to read,
# nor a network to plug into; only the slices are looked at.
set -euo pipefail
# DevStack's own files read variables that nobody has set.
set +u
# shellcheck source=/dev/null
. "$1/openrc" admin admin >/dev/null
set -u
name=pond-devstack-guest flavor=${FLAVOR:-pond.fixed.small} pool_mib=${POOL_MIB:-1024}
boot_seconds=${BOOT_SECONDS:-300} free_seconds=${FREE_SECONDS:-90}
die() { echo "guest: $*" >&2; exit 1; }

free_slices() {
    openstack memory pool list -f json |
        python3 -c 'import json, sys; print(sum(pool["Slices"].get("free", 0) for pool in json.load(sys.stdin)))'
}
# The nodes that the guest says it has.
read_console() {
    local deadline=$((SECONDS + boot_seconds))
    until openstack console log show "$name" | grep '^POND .*"beat"' >/dev/null; do
        [ "$SECONDS" -lt "$deadline" ] || die "the guest says nothing on its console"
        sleep 2
    done
    openstack console log show "$name" | tr -d '\r' | sed -n 's/^POND \({"kind": "node".*\)/\1/p' | tee /tmp/pond-guest-nodes
    python3 - "$pool_mib" /tmp/pond-guest-nodes <<'PY'
import json, sys
wanted = int(sys.argv[1])
nodes = [json.loads(line) for line in open(sys.argv[2])]
bare = [node for node in nodes if not node["cpulist"]]
assert len(bare) == 1, f"nodes without CPUs: {bare}"
mib = bare[0]["memtotal_kib"] / 1024
assert wanted * 0.9 < mib <= wanted, f"node without CPUs of {mib:.0f} MiB, not {wanted}"
print(f"zNUMA node {bare[0]['node']}: no CPUs, {mib:.0f} of {wanted} MiB, distances {bare[0]['distance']}")
PY
}
image=$(openstack image list -f value -c Name | grep '^pond-guest' | grep -Ev 'kernel|ramdisk|initrd|vmlinuz' | head -n1)
[ -n "$image" ] || die "there is no image pond-guest"
network=(--network "$(openstack network list --internal -f value -c Name | sort | head -n1)")
[ "${VIRT_DRIVER:-libvirt}" != fake ] || network=(--nic none)
before=$(free_slices)
begun=$SECONDS
# A microversion in which a host can be asked for.
openstack --os-compute-api-version 2.74 server create --image "$image" --flavor "$flavor" "${network[@]}" \
    ${HOST:+--host "$HOST"} --wait "$name" -f value -c status
trap 'openstack server delete "$name" >/dev/null 2>&1 || true' EXIT
echo "ACTIVE after $((SECONDS - begun)) s${HOST:+ on $HOST}, free slices $before, now $(free_slices)"
[ "$(free_slices)" -lt "$before" ] || die "the guest runs and holds no slice"

[ "${VIRT_DRIVER:-libvirt}" = fake ] || read_console
openstack memory allocation list
openstack server delete --wait "$name"
trap - EXIT
deadline=$((SECONDS + free_seconds))
until [ "$(free_slices)" = "$before" ]; do
    [ "$SECONDS" -lt "$deadline" ] || die "the guest is deleted and its slices are not free: $(free_slices) of $before"
    sleep 1
done
echo "deleted, free slices $(free_slices)"
