#!/usr/bin/env bash
# A real stack.sh with the pondstack plugin, in a systemd container on a fresh root of Debian or Ubuntu; `make devstack` calls this.
#
# stack.sh, then a zNUMA guest by the `openstack` client, the smoke tests of our Tempest plugin, unstack.sh, clean.sh; and
# a look for what was left. TIMES=2 does all of it twice, each time on a fresh root. NODES=2 adds a compute node in a
# container of its own, by devstack/samples/local-compute.conf, and boots a zNUMA guest there, too; guests can move between
# them, so the tests that move one run as well. Environment:
#   WORK       folder of all that it makes (./.devstack); the Debian root in it is kept for the next time
#   GIT_BASE   where OpenStack's repositories are: a URL, or a folder with openstack/<name>.git (https://opendev.org)
#   RELEASE    Debian's bookworm or trixie, or Ubuntu's noble (bookworm)
#   BRANCH     branch of DevStack (master)
#   TEMPEST    which tests run, a regular expression (our smoke tests; with several nodes a live migration and a mitigation, too)
#   TIMES      how often (1)
#   VIRT_DRIVER  of Nova: libvirt (QEMU without KVM), or fake, with two fake hosts (libvirt)
#   NODES      how many nodes: the first has all services, the others are compute nodes (1)
#   REUSE      1: go on with the root of the former run instead of a fresh one, such as after a failure
#   KEEP       1: stop after the checks, leave the container running until Enter or end of input
# What is committed is what is installed: the plugin is cloned from this repository's HEAD.
set -euo pipefail
cd "$(dirname "$0")/../.."
WORK=$(realpath -m "${WORK:-$PWD/.devstack}")
RELEASE=${RELEASE:-bookworm} BRANCH=${BRANCH:-master} REUSE=${REUSE:-0} TIMES=${TIMES:-1} NODES=${NODES:-1}
VIRT_DRIVER=${VIRT_DRIVER:-libvirt} GIT_BASE=${GIT_BASE:-https://opendev.org}
VENV=${VENV:-$PWD/.venv}
# By libvirt to another node: fake computes run no guest that a test could watch moving.
MOVES=False
if [ "$NODES" -gt 1 ] && [ "$VIRT_DRIVER" = libvirt ]; then
    MOVES=True
    TEMPEST=${TEMPEST:-'pondstack_tempest.*(smoke|MitigationTest|test_a_live_migration_keeps_it)'}
else
    TEMPEST=${TEMPEST:-'pondstack_tempest.*smoke'}
fi
mkdir -p "$WORK/srv"
LOG=$WORK/run.log
: >"$LOG"
say() { printf '  %-11s %s\n' "$1" "$2"; }
die() { printf 'devstack failed: %s\n  log: %s\n' "$1" "$LOG" >&2; exit 1; }
# shellcheck source=tools/debian.sh
. tools/debian.sh
# shellcheck source=devstack/tools/container.sh
. devstack/tools/container.sh
[ "$(id -u)" = 0 ] || die "needs root (a container, a network namespace): run it as root"
for tool in mmdebstrap systemd-nspawn nft ip nsenter cpio /bin/busybox; do
    command -v "$tool" >/dev/null || die "no $tool: run tools/setup.sh"
done
[ -s "$VENV/share/pondstack/vmlinuz" ] || die "no kernel for guests: run tools/setup.sh"

case $NODES in [1-9]) ;; *) die "NODES=$NODES: 1 to 9 nodes" ;; esac
case $VIRT_DRIVER in libvirt | fake) ;; *) die "VIRT_DRIVER=$VIRT_DRIVER: libvirt or fake" ;; esac

down() {
    local node
    for ((node = NODES; node >= 1; node--)); do
        at_node "$node"
        container_down
    done
    network_down
}
trap down EXIT
trap 'exit 130' INT TERM

# What the containers find below /srv: the repositories, if they are here, the plugin, the image; and the pool of several.
base=$GIT_BASE
bind=()
if [ -d "$GIT_BASE" ]; then
    base=file:///srv/git
    bind=(--bind-ro="$(realpath "$GIT_BASE"):/srv/git")
    mkdir -p "$WORK/srv/git"
fi
if [ "$NODES" -gt 1 ]; then
    mkdir -p "$WORK/srv/pond" "$WORK/pool"
    chmod 1777 "$WORK/pool"
    bind+=(--bind="$WORK/pool:/srv/pond")
fi
rm -rf "$WORK/srv/pondstack.git"
git clone -q --bare . "$WORK/srv/pondstack.git" || die "git clone of the plugin"
git -C "$WORK/srv/pondstack.git" update-ref refs/heads/master "$(git rev-parse HEAD)"
git -C "$WORK/srv/pondstack.git" symbolic-ref HEAD refs/heads/master
devstack/tools/image.sh "$VENV/share/pondstack/vmlinuz" rack/pondstack_rack/templates/init.sh \
    "$WORK/srv/pond-guest-x86_64-uec.tar.gz" || die "building the guest's image"
cp devstack/tools/guest.sh devstack/tools/leftovers.sh "$WORK/srv/"

# step NAME SCRIPT: a line of shell as the user stack of the node, timed; its output goes to a log of its own.
step() {
    local begun=$SECONDS log=$OWN/$1.log
    # Waited for, so that a signal ends it all at once.
    as_stack "$2" >"$log" 2>&1 &
    if ! wait $!; then
        tail -n 25 "$log"
        die "$1 on $NAME; its log: $log"
    fi
    say "$1" "$((SECONDS - begun)) s$([ "$NODES" = 1 ] || echo ", $NAME")"
}

# local.conf of the node: a compute node has our sample of one, with our addresses, passwords and places.
local_conf() {
    if [ "$NUMBER" = 1 ]; then
        cat devstack/samples/container.conf
        [ "$NODES" = 1 ] || printf '%s\n' MULTI_HOST=True POND_POOL_TMPFS=False POND_POOL_DIR=/srv/pond \
            POND_AUTHORITY_DIR=/srv/pond/authority LIVE_MIGRATION_AVAILABLE=$MOVES
    else
        sed -e "s|198.51.100.12|@ADDRESS@|; s|198.51.100.11|$NETWORK.2|; s|secret|devstack|" \
            -e 's|https://git.example.org/pondstack|file:///srv/pondstack.git|' -e 's/^# \(POND_POOL_TMPFS\|POND_POOL_DIR\|POND_AUTHORITY_DIR\)/\1/' \
            devstack/samples/local-compute.conf
        sed -n '/^GIT_BASE=/p; /^LOG/p; /^VIRT_DRIVER=/,/^OVS_/p' devstack/samples/container.conf
    fi
    [ "$VIRT_DRIVER" = libvirt ] || echo NUMBER_FAKE_NOVA_COMPUTE=2
    # The tests' image has a kernel of its own: no disk format, so the host that a guest moves to would refuse to fetch it.
    # shellcheck disable=SC2016 # DevStack expands it
    [ "$MOVES" = False ] || printf '%s\n' '[[post-config|$NOVA_CONF]]' '[workarounds]' 'disable_deep_image_inspection = True'
}

# node NUMBER: a stacked node.
node() {
    at_node "$1"
    make_root
    local_conf | sed -e "s|@ADDRESS@|$ADDRESS|; s|@GIT_BASE@|$base|; s|^VIRT_DRIVER=.*|VIRT_DRIVER=$VIRT_DRIVER|" >"$WORK/srv/local$NUMBER.conf"
    node_network_up
    container_up "${bind[@]}"
    step clone "rm -rf devstack && git clone -q -b $BRANCH $base/openstack/devstack.git devstack &&
        cp /srv/local$NUMBER.conf devstack/local.conf"
    step stack "cd devstack && ./stack.sh"
}

# guest HOST: boot, look at and delete a zNUMA guest there.
guest() {
    step guest "VIRT_DRIVER=$VIRT_DRIVER HOST=$1 /srv/guest.sh ~/devstack"
    sed 's/^/              /' "$OWN/guest.log"
}

# Let the nodes reach each other as the user stack: Nova's live migration goes over ssh, and DevStack leaves the keys to
# who stacks several nodes. Nova connects as stack, and libvirtd, which moves the guest itself, as root.
exchange_keys() {
    local number names=""
    at_node 1
    step keys "mkdir -p -m 700 ~/.ssh && rm -f ~/.ssh/id_ed25519 && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519"
    rm -rf "$WORK/srv/ssh"
    cp -r "$ROOT/opt/stack/.ssh" "$WORK/srv/ssh"
    chmod -R a+rX "$WORK/srv/ssh"
    for ((number = 1; number <= NODES; number++)); do
        names+=" devstack$number"
    done
    for ((number = 1; number <= NODES; number++)); do
        at_node "$number"
        in_container systemctl start ssh
        step keys "mkdir -p -m 700 ~/.ssh && cat /srv/ssh/id_ed25519.pub >>~/.ssh/authorized_keys &&
            install -m 600 /srv/ssh/id_ed25519 ~/.ssh/id_ed25519"
    done
    for ((number = 1; number <= NODES; number++)); do
        at_node "$number"
        step keys "ssh-keyscan -t ed25519$names >>~/.ssh/known_hosts && sudo mkdir -p -m 700 /root/.ssh &&
            sudo install -m 600 ~/.ssh/id_ed25519 ~/.ssh/known_hosts /root/.ssh && for name in$names; do
            virsh -c qemu+ssh://stack@\$name/system version && sudo virsh -c qemu+ssh://stack@\$name/system version || exit 1
        done"
    done
    rm -rf "$WORK/srv/ssh"
}

# Undo what node did, and look for what is left.
unstack() {
    at_node "$1"
    step unstack "cd devstack && ./unstack.sh"
    step clean "cd devstack && ./clean.sh"
    in_container /srv/leftovers.sh /opt/stack >"$OWN/leftovers.log" || { cat "$OWN/leftovers.log"; die "clean.sh left these on $NAME"; }
    say leftovers none
    container_down
}

once() {
    local number
    network_up
    for ((number = 1; number <= NODES; number++)); do
        node "$number"
    done
    at_node 1
    if [ "$NODES" -gt 1 ]; then
        step discover "cd devstack && ./tools/discover_hosts.sh"
        [ "$MOVES" = False ] || exchange_keys
        at_node 1
    fi
    for ((number = 1; number <= NODES; number++)); do
        guest "devstack$number$([ "$VIRT_DRIVER" = libvirt ] || echo 1)"
    done
    if [ -d tempest_tests ]; then
        # The venv that stack.sh made, by the constraints that it was made by.
        step tempest "cd tempest && export UPPER_CONSTRAINTS_FILE=/opt/stack/requirements/upper-constraints.txt &&
            tox -evenv-tempest -- tempest run --regex '$TEMPEST'"
        sed -n '/^Totals/,$p' "$OWN/tempest.log" | sed 's/^/              /'
    else
        say tempest "skipped: this tree has no tempest_tests"
    fi
    if [ "${KEEP:-0}" = 1 ]; then
        say kept "nsenter --target ${LEADERS[1]} --all runuser -l stack; Enter goes on"
        read -r || true
    fi
    for ((number = NODES; number >= 1; number--)); do
        unstack "$number"
    done
    network_down
}

make_base
for ((turn = 1; turn <= TIMES; turn++)); do
    say turn "$turn of $TIMES, OpenStack from $GIT_BASE, $([ "$REUSE" = 1 ] && echo "the former root" || echo "a fresh root"), nodes: $NODES, pondstack $(git rev-parse --short HEAD)"
    once
done
echo "devstack: $TIMES of $TIMES ended well, nodes: $NODES"
