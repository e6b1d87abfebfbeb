# shellcheck shell=bash
# Short stand-ins for functions of DevStack that compute or write configuration files; standins.sh sources this where there
# is no DevStack. They behave as DevStack's own do for what the plugin asks of them: the tests run with either.

function trueorfalse {
    case "${!2:-$1}" in
    1|[yY]*|[tT]rue) echo True ;;
    0|[nN]*|[fF]alse) echo False ;;
    *) echo "$1" ;;
    esac
}

function define_plugin { :; }

function is_service_enabled {
    local service
    for service in "$@"; do
        if [[ ",$ENABLED_SERVICES," == *",$service,"* || $service == nova && ",$ENABLED_SERVICES" == *,n-* ]]; then
            return 0
        fi
    done
    return 1
}

function enable_service {
    local service
    for service in "$@"; do
        if [[ ",$DISABLED_SERVICES," != *",$service,"* ]] && ! is_service_enabled "$service"; then
            ENABLED_SERVICES+=,$service
        fi
    done
}

function die {
    echo "[ERROR] $2" >&2
    exit 1
}

# _write_option FILE SECTION OPTION VALUE...: the option has these values and no others.
function _write_option {
    local file=$1 section=$2 option=$3
    shift 3
    : >>"$file"
    local values
    printf -v values '%s\n' "$@"
    mapfile -t values < <(VALUES=${values%$'\n'} awk -v section="[$section]" -v option="$option" '
        function put(   i, count, values) {
            count = split(ENVIRON["VALUES"], values, "\n")
            for (i = 1; i <= count; i++) print option " = " values[i]
            done = 1
        }
        $0 == section { print; put(); inside = 1; next }
        /^\[/ { inside = 0 }
        inside && $1 == option && $2 == "=" { next }
        { print }
        END { if (!done) { print section; put() } }' "$file")
    printf '%s\n' "${values[@]}" >"$file"    # the same file: its mode stays
}

function iniset { _write_option "$@"; }

function iniset_multiline { _write_option "$@"; }

function iniget_multiline {
    awk -v section="[$2]" -v option="$3" '
        /^\[/ { inside = $0 == section }
        inside && $1 == option && $2 == "=" { sub(/^[^=]*= */, ""); printf "%s%s", between, $0; between = " " }
        END { print "" }' "$1"
}

function iniget { iniget_multiline "$@"; }

function load_plugin_settings {
    # shellcheck source=devstack/settings
    source "$PLUGIN/devstack/settings"
}

function run_plugins {
    # shellcheck source=devstack/plugin.sh
    source "$PLUGIN/devstack/plugin.sh" "$@"
}
