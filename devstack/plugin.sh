#!/bin/bash
#
# DevStack runs this by phase: stack (pre-install, install, post-config, extra, test-config), unstack, clean.
# What it does is in lib/; the settings are in `settings`.

_XTRACE_POND=$(set +o | grep xtrace)
set +o xtrace

# shellcheck source=devstack/lib/pondstack
source "$POND_DIR/devstack/lib/pondstack"
# shellcheck source=devstack/lib/pondstack-data-plane
source "$POND_DIR/devstack/lib/pondstack-data-plane"
# shellcheck source=devstack/lib/pondstack-nova
source "$POND_DIR/devstack/lib/pondstack-nova"
# shellcheck source=devstack/lib/pondstack-cloud
source "$POND_DIR/devstack/lib/pondstack-cloud"

if is_pond_enabled; then
    if [[ "$1" == stack && "$2" == install ]]; then
        echo_summary "Installing pondstack"
        install_pond
    elif [[ "$1" == stack && "$2" == post-config ]]; then
        # First: stack.sh edits nova.conf in the background meanwhile, and one of two edits at a time is lost.
        async_wait configure_neutron_nova
        echo_summary "Configuring pondstack"
        configure_pond
        configure_pond_nova
        init_pond
    elif [[ "$1" == stack && "$2" == extra ]]; then
        echo_summary "Starting pondstack"
        start_pond
        create_pond_flavors
        create_pond_quota
    elif [[ "$1" == stack && "$2" == test-config ]]; then
        check_pond_nova
        configure_pond_tempest
        wait_for_pond
        hold_pond_base
    elif [[ "$1" == unstack ]]; then
        stop_pond
    elif [[ "$1" == clean ]]; then
        cleanup_pond
    fi
fi

$_XTRACE_POND
