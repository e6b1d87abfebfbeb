#!/bin/bash
#
# Grenade's resources: a guest with pool memory that the upgrade must not disturb.

set -o errexit
# shellcheck source=/dev/null
source "$GRENADE_DIR/grenaderc"
# shellcheck source=/dev/null
source "$GRENADE_DIR/functions"
# shellcheck source=/dev/null
source "$TOP_DIR/openrc" admin demo

set -o xtrace
POND_SERVER=grenade-pond
POND_FLAVOR=pond.fixed.small

function create {
    local image network id
    image=$(openstack image list --public -f value -c ID | head -n1)
    network=$(openstack network list --internal -f value -c ID | head -n1)
    openstack server create --image "$image" --flavor "$POND_FLAVOR" --network "$network" --wait "$POND_SERVER"
    id=$(openstack server show "$POND_SERVER" -f value -c id)
    resource_save pondstack server_id "$id"
}

# Slices of the guest, as the controller has them.
function held {
    openstack memory allocation list -f value | grep -c "$(resource_get pondstack server_id)"
}

function verify {
    openstack server show "$POND_SERVER" -f value -c status | grep -qx ACTIVE
    [[ "$(held)" -ge 1 ]]
}

function verify_noapi {
    # The guest runs although nobody controls it.
    pgrep -f "uuid $(resource_get pondstack server_id)" >/dev/null
}

function destroy {
    openstack server delete --wait "$POND_SERVER"
}

case $1 in
    create|verify|verify_noapi|destroy) "$1" ;;
    force_destroy) destroy || true ;;
    *) echo "resources.sh create|verify|verify_noapi|destroy|force_destroy"; exit 1 ;;
esac
