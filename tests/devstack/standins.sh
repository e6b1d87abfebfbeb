# shellcheck shell=bash
# shellcheck disable=SC2034
# Runs phases of the plugin with stand-ins for what DevStack would do: `bash standins.sh stack|unstack|clean|settings` in a sandbox.
#
# What changes the machine is recorded in $RECORD, one call a line, and only what lies below $SANDBOX is really touched.
# With DEVSTACK_DIR the functions that only compute or write configuration files are DevStack's own (functions,
# functions-common, inc/*); without, short ones of ours.
set -o errexit
mode=$1

TOP_DIR=${DEVSTACK_DIR:-$SANDBOX} FILES=$SANDBOX/files DEST=$SANDBOX/dest DATA_DIR=$SANDBOX/data
ENABLED_SERVICES=${ENABLED_SERVICES:-} DISABLED_SERVICES=${DISABLED_SERVICES:-} DEVSTACK_PLUGINS=pondstack
declare -A GITDIR=([pondstack]=$PLUGIN)
STACK_USER=stack HOSTNAME=node1 HOST_IP=198.51.100.7 SERVICE_HOST=198.51.100.1 SERVICE_PROTOCOL=http REGION_NAME=RegionOne
NUMBER_FAKE_NOVA_COMPUTE=${NUMBER_FAKE_NOVA_COMPUTE:-1} VIRT_DRIVER=${VIRT_DRIVER:-libvirt} LIBVIRT_TYPE=${LIBVIRT_TYPE:-kvm}
NOVA_DIR=$DEST/nova NOVA_CONF=$SANDBOX/etc/nova/nova.conf NOVA_CPU_CONF=$SANDBOX/etc/nova/nova-cpu.conf NOVA_NUM_CELLS=1
QEMU_CONF=$SANDBOX/etc/libvirt/qemu.conf TEMPEST_CONFIG=$SANDBOX/tempest/etc/tempest.conf
ENABLE_DEBUG_LOG_LEVEL=True SERVICE_TIMEOUT=60
if [[ "$mode" != settings ]]; then
    POND_APPARMOR_DIR=$SANDBOX/etc/apparmor.d SYSTEMD_DIR=$SANDBOX/etc/systemd/system
    POND_CONF_DIR=$SANDBOX/etc/pondstack POND_EMULATOR=$SANDBOX/usr/bin/qemu-pondstack
fi
PATH=$SANDBOX/bin:$PATH

if [[ -n "${DEVSTACK_DIR:-}" ]]; then
    # shellcheck source=/dev/null
    source "$DEVSTACK_DIR/functions"
else
    # shellcheck source=tests/devstack/library.sh
    source "$(dirname "${BASH_SOURCE[0]}")/library.sh"
fi

# record WORD...: one line, each word as the shell would need it.
function record {
    local line
    printf -v line '%q ' "$@"
    echo "${line% }" >>"$RECORD"
}

for _name in async_wait setup_develop install_package setup_logging rpc_backend_add_vhost configure_keystoneauth \
    configure_keystone_authtoken_middleware write_uwsgi_config remove_uwsgi_config recreate_database create_service_user \
    get_or_create_service get_or_create_endpoint restart_service; do
    # The name is this turn's.
    eval "function $_name { record $_name \"\$@\"; }"
done

function run_process { if is_service_enabled "$1"; then record run_process "$@"; fi; }
function wait_for_service { record wait_for_service "$@"; [[ -z "${API_DOWN:-}" ]]; }
function stop_process { if is_service_enabled "$1"; then record stop_process "$@"; fi; }

# What lib/rpc_backend, lib/database, lib/nova and lib/apache would answer.
function get_transport_url { echo "rabbit://rabbit@broker:5672/$1"; }
function get_notification_url { echo "rabbit://rabbit@broker:5672/"; }
function iniset_rpc_backend { iniset "$2" "$3" transport_url "$(get_transport_url "$4")"; }
function database_connection_url { echo "mysql+pymysql://root@database/$1"; }
function conductor_conf { echo "$SANDBOX/etc/nova/nova_cell$1.conf"; }
function apache_site_config_for { echo "$SANDBOX/etc/apache2/$1.conf"; }
function get_python_exec_prefix { echo "$SANDBOX/bin"; }
function echo_summary { :; }

# Programs.
function hostname { echo node1; }
function id { echo 1000; }
function which { echo "$SANDBOX/bin/$1"; }
# shellcheck disable=SC2032
function virsh { echo "${LIBVIRT_HOSTNAME:-node1}"; }
function mountpoint { [[ -e "$SANDBOX/mounted" ]]; }
function openstack {
    record openstack "$@"
    case "$*" in
    *"flavor show"*) [[ " ${HAVE_FLAVORS:-} " == *" $4 "* ]] ;;
    *"registered limit list"*) echo "${HAVE_LIMIT:-}" ;;
    *"memory host show"*) echo "[{'online': ${BASE_ONLINE:-1}, 'reason': ''}]" ;;
    *"allocation candidate"*) if [[ "${POOL_READY:-yes}" == yes ]]; then echo 1; fi ;;
    esac
}

# sudo: run within the sandbox, otherwise recorded only.
function sudo {
    local word
    case "$1" in
    virsh) "$@" ; return ;;
    mount) touch "$SANDBOX/mounted" ;;
    umount) rm "$SANDBOX/mounted" ;;
    esac
    record sudo "$@"
    case "$1" in
    install|rm|tee|chmod|sed|grep|find) ;;
    *) return 0 ;;
    esac
    for word in "$@"; do
        if [[ "$word" == /* && "$word" != "$SANDBOX"/* && "$word" != /^* ]]; then
            return 0
        fi
    done
    if [[ "$1" == install ]]; then
        set -- mkdir -p "${!#}"    # the owner is a user of another machine
    fi
    "$@"
}

# phase WORD...: what DevStack's run_phase does for the plugin.
function phase {
    echo "-- $*" >>"$RECORD"
    run_plugins "$@"
}

load_plugin_settings >/dev/null
case "$mode" in
stack)
    phase stack pre-install
    phase stack install
    phase stack post-config
    # nova-compute starts: DevStack copies its configuration, and somebody may spoil it.
    if is_service_enabled n-cpu; then
        cp "$NOVA_CONF" "$NOVA_CPU_CONF"
    fi
    eval "${SPOIL:-}"
    phase stack extra
    phase stack test-config
    echo "tempest plugins: ${TEMPEST_PLUGINS:-0}" >>"$RECORD"
    ;;
settings)
    for _name in "${!POND_@}"; do
        echo "$_name=${!_name}" >>"$RECORD"
    done
    ;;
unstack) phase unstack ;;
clean) phase clean ;;
esac
echo "services: $ENABLED_SERVICES" >>"$RECORD"
