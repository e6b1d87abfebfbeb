#!/bin/bash
#
# Grenade, before the upgrade: stops our services of the base cloud. Guests run on.

set -o errexit
# shellcheck source=/dev/null
source "$GRENADE_DIR/grenaderc"
# shellcheck source=/dev/null
source "$BASE_DEVSTACK_DIR/functions"
# shellcheck source=/dev/null
source "$BASE_DEVSTACK_DIR/stackrc"
# shellcheck source=devstack/settings
source "$(dirname "$0")/../settings"
# shellcheck source=devstack/lib/pondstack
source "$(dirname "$0")/../lib/pondstack"
# shellcheck source=devstack/lib/pondstack-data-plane
source "$(dirname "$0")/../lib/pondstack-data-plane"

set -o xtrace
stop_pond_services
