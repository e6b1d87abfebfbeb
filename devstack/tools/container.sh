# shellcheck shell=bash
# A Debian or Ubuntu root, and systemd containers on it with a network namespace each, on one bridge; sourced by run.sh.
#
# The root is made once; each container runs on an overlay of it, so that a fresh machine costs nothing. Their network is
# translated: it reaches out, and nothing outside reaches in. Needs: root, WORK, LOG, NODES, say, die. What is named for
# one node is for the one that at_node chose last.

BRIDGE=pond-devstack
NETWORK=198.18.77               # of the range for benchmarks: nobody's network
MTU=1400
UBUNTU=http://archive.ubuntu.com/ubuntu
# Debian does not have Ubuntu's keys: its package of them, and what that package must be.
UBUNTU_KEYS=pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb
UBUNTU_KEYS_SHA256=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8
CGROUPS=/sys/fs/cgroup
[ ! -d "$CGROUPS/unified" ] || CGROUPS=$CGROUPS/unified
declare -A NSPAWNS LEADERS      # by node: the process to end, and the container's init
BASE_PACKAGES=systemd,systemd-sysv,dbus,sudo,locales,git,python3,python3-venv,python3-dev,gcc,ca-certificates,iproute2,iptables
BASE_PACKAGES+=,passwd,procps,lsb-release,curl,wget,less,kmod,openssl,netbase,acl

# at_node NUMBER: go on with that node: 1 has all services, 2 and on are compute nodes.
at_node() {
    NUMBER=$1
    NAME=devstack$NUMBER
    ADDRESS=$NETWORK.$((NUMBER + 1))
    NETNS=pondstack-$NAME
    CGROUP=$CGROUPS/pondstack-$NAME
    OWN=$WORK/node$NUMBER         # what is its own of the root
    ROOT=$OWN/root
}

# The root, made when it is not there yet.
make_base() {
    if [ -e "$WORK/base.done" ]; then
        return
    fi
    say root "$RELEASE, in $WORK/base (once)"
    rm -rf --one-file-system "$WORK/base"
    base_sources >"$WORK/sources.list"
    unshare --mount mmdebstrap --mode=root --variant=apt --include="$BASE_PACKAGES" "$RELEASE" "$WORK/base" \
        "$WORK/sources.list" >>"$LOG" 2>&1 || die mmdebstrap
    # The root has Ubuntu's keys of its own.
    sed -i "s|$WORK/ubuntu-keyring/|/|" "$WORK/base/etc/apt/sources.list.d/"*.list
    touch "$WORK/base.done"
}

# Where the root's packages come from.
base_sources() {
    if [ "$RELEASE" = noble ]; then
        ubuntu_sources
        return
    fi
    local lines
    lines=$(debian_sources "$RELEASE")
    echo "${lines:-deb http://deb.debian.org/debian $RELEASE main}"
}

ubuntu_sources() {
    local suite keys=$WORK/ubuntu-keyring
    /usr/lib/apt/apt-helper download-file "$UBUNTU/$UBUNTU_KEYS" "$keys.deb" "SHA256:$UBUNTU_KEYS_SHA256" >>"$LOG" 2>&1 ||
        die "fetching $UBUNTU/$UBUNTU_KEYS"
    dpkg-deb -x "$keys.deb" "$keys"
    for suite in "$RELEASE" "$RELEASE-updates" "$RELEASE-security"; do
        echo "deb [signed-by=$keys/usr/share/keyrings/ubuntu-archive-keyring.gpg] $UBUNTU $suite main universe"
    done
}

# An empty overlay on the root, with what stack.sh wants of a machine; with REUSE the one of the former run as it is.
make_root() {
    local fresh=yes
    if [ "$REUSE" = 1 ] && [ -d "$OWN/upper/opt/stack" ]; then
        fresh=no
    else
        rm -rf --one-file-system "$OWN"
    fi
    mkdir -p "$OWN/upper" "$OWN/overlay" "$ROOT"
    mount -t overlay pondstack-devstack -o "lowerdir=$WORK/base,upperdir=$OWN/upper,workdir=$OWN/overlay" "$ROOT" ||
        die "mounting the overlay"
    if [ "$fresh" = yes ]; then
        furnish_root
    fi
}

furnish_root() {
    local node
    echo "$NAME" >"$ROOT/etc/hostname"
    echo '127.0.0.1 localhost' >"$ROOT/etc/hosts"
    for ((node = 1; node <= NODES; node++)); do
        echo "$NETWORK.$((node + 1)) devstack$node" >>"$ROOT/etc/hosts"
    done
    rm -f "$ROOT/etc/resolv.conf"
    cp -L /etc/resolv.conf "$ROOT/etc/resolv.conf"
    # The certificates that this machine trusts.
    cp -L /etc/ssl/certs/ca-certificates.crt "$ROOT/etc/ssl/certs/ca-certificates.crt"
    printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\ntimeout = 120\n' >"$ROOT/etc/pip.conf"
    echo 'REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt' >>"$ROOT/etc/environment"
    echo 'en_US.UTF-8 UTF-8' >"$ROOT/etc/locale.gen"
    chroot "$ROOT" locale-gen >>"$LOG" 2>&1
    chroot "$ROOT" git config --system --add safe.directory '*'
    chroot "$ROOT" useradd --shell /bin/bash --home-dir /opt/stack --create-home stack
    chmod 755 "$ROOT/opt/stack"
    echo 'stack ALL=(ALL) NOPASSWD: ALL' >"$ROOT/etc/sudoers.d/stack"
    # Its kernel is this machine's, which may lack what these want; see doc/source/install/devstack.md.
    drop_in iscsid.service '[Unit]' 'ConditionPathExists=/sys/class/iscsi_host'
    drop_in ovn-controller.service '[Service]' \
        'ExecStartPre=/usr/bin/ovs-vsctl set open . external-ids:ovn-bridge-datapath-type=netdev'
}

# drop_in UNIT LINE...: more lines for a unit of the container.
drop_in() {
    local folder="$ROOT/etc/systemd/system/$1.d"
    shift
    mkdir -p "$folder"
    printf '%s\n' "$@" >"$folder/container.conf"
}

network_up() {
    local out
    out=$(ip -o route get 192.0.2.255 2>/dev/null | sed -n 's/.* dev \([^ ]*\).*/\1/p')
    [ -n "$out" ] || die "this machine has no default route"
    sysctl -n net.ipv4.ip_forward >"$WORK/ip_forward"
    ip link add "$BRIDGE" mtu "$MTU" type bridge || die "making a bridge"
    ip address add "$NETWORK.1/28" dev "$BRIDGE"
    ip link set "$BRIDGE" up
    nft -f - <<NFT || die "nft"
table ip pondstack_devstack {
    chain out { type nat hook postrouting priority srcnat; oifname "$out" ip saddr $NETWORK.0/28 masquerade; }
}
NFT
    sysctl -q -w net.ipv4.ip_forward=1
}

network_down() {
    nft delete table ip pondstack_devstack 2>/dev/null || true
    ip link delete "$BRIDGE" 2>/dev/null || true
    if [ -e "$WORK/ip_forward" ]; then
        sysctl -q -w "net.ipv4.ip_forward=$(cat "$WORK/ip_forward")"
        rm "$WORK/ip_forward"
    fi
}

# Connect the node to the bridge.
node_network_up() {
    ip netns add "$NETNS" || die "ip netns add"
    ip link add "pond-ds$NUMBER" mtu "$MTU" master "$BRIDGE" type veth peer name host0 mtu "$MTU" netns "$NETNS" ||
        die "making a veth pair"
    ip link set "pond-ds$NUMBER" up
    ip -n "$NETNS" address add "$ADDRESS/28" dev host0
    ip -n "$NETNS" link set host0 up
    ip -n "$NETNS" link set lo up
    ip -n "$NETNS" route add default via "$NETWORK.1"
}

# Boot the node's container, in a control group of its own: it makes groups there whose names are always the same.
container_up() {
    local deadline
    mkdir -p "$CGROUP"
    (
        echo "$BASHPID" >"$CGROUP/cgroup.procs"
        exec env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network systemd-nspawn --quiet \
            --directory="$ROOT" --boot --register=no --keep-unit --console=pipe --capability=all \
            --drop-capability=CAP_SYS_RESOURCE --network-namespace-path="/run/netns/$NETNS" --resolv-conf=off \
            --timezone=off --bind-ro="$WORK/srv:/srv" "$@"
    ) </dev/null >"$OWN/console.log" 2>&1 &
    NSPAWNS[$NUMBER]=$!
    deadline=$((SECONDS + 120))
    until booted; do
        kill -0 "${NSPAWNS[$NUMBER]}" 2>/dev/null || die "the container ended; see $OWN/console.log"
        [ "$SECONDS" -lt "$deadline" ] || die "the container does not boot; see $OWN/console.log"
        sleep 0.2
    done
}

# Whether the container's systemd has started all; a unit that failed does not matter here.
booted() {
    local state
    LEADERS[$NUMBER]=$(pgrep -P "${NSPAWNS[$NUMBER]}") || return 1
    state=$(in_container systemctl is-system-running 2>/dev/null) || [ "$state" = degraded ]
}

# in_container COMMAND...: as root, in all of its namespaces.
in_container() {
    nsenter --target "${LEADERS[$NUMBER]}" --all -- /usr/bin/env -i -C / PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        LANG=C.UTF-8 "$@"
}

# as_stack SCRIPT: a line of shell as the user stack, in its home.
as_stack() {
    in_container runuser --login stack --command "$1"
}

container_down() {
    local pid=${NSPAWNS[$NUMBER]:-}
    if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
        kill -TERM "$pid"
        wait "$pid" || true
    fi
    unset "NSPAWNS[$NUMBER]"
    if mountpoint -q "$ROOT"; then
        umount "$ROOT"
    fi
    ip netns delete "$NETNS" 2>/dev/null || true
    # In each hierarchy in which the container made some.
    find /sys/fs/cgroup -depth -type d -path "*/pondstack-$NAME*" -exec rmdir {} + 2>/dev/null || true
}
