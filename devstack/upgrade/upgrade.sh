#!/bin/bash
#
# Grenade, the upgrade: the target's code, then the schema (first: see doc/source/admin/ha.md), then the services. Agents' state and
# the pool stay as they are: guests use them.

set -o errexit
# shellcheck source=/dev/null
source "$GRENADE_DIR/grenaderc"
# shellcheck source=/dev/null
source "$GRENADE_DIR/functions"
# shellcheck source=/dev/null
source "$TARGET_DEVSTACK_DIR/functions"
# shellcheck source=/dev/null
source "$TARGET_DEVSTACK_DIR/stackrc"
# shellcheck source=/dev/null
source "$TARGET_DEVSTACK_DIR/lib/apache"
# shellcheck source=devstack/settings
source "$(dirname "$0")/../settings"
# shellcheck source=devstack/lib/pondstack
source "$(dirname "$0")/../lib/pondstack"
# shellcheck source=devstack/lib/pondstack-data-plane
source "$(dirname "$0")/../lib/pondstack-data-plane"

set -o xtrace
install_pond
if is_service_enabled pond-controller1; then
    "$(pond_bin)/pondstack-manage" --config-file "$POND_CONF" db sync
    "$(pond_bin)/pondstack-status" --config-file "$POND_CONF" upgrade check
fi
# Guests with remote memory wait for it meanwhile.
stop_process pond-data-plane
start_pond
