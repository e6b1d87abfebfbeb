#!/usr/bin/env bash
# A real stack.sh with the pondstack plugin, in a systemd container on a fresh Debian root; `make devstack` calls this.
#
# stack.sh, then a zNUMA guest by the `openstack` client, the smoke tests of our Tempest plugin, unstack.sh, clean.sh; and
# a look for what was left. TIMES=2 does all of it twice, each time on a fresh root. Environment:
#   WORK       folder of all that it makes (./.devstack); the Debian root in it is kept for the next time
#   GIT_BASE   where OpenStack's repositories are: a URL, or a folder with openstack/<name>.git (https://opendev.org)
#   RELEASE    the Debian release: bookworm or trixie (bookworm)
#   BRANCH     branch of DevStack (master)
#   TEMPEST    which tests run, a regular expression (our smoke tests)
#   TIMES      how often (1)
#   REUSE      1: go on with the root of the former run instead of a fresh one, such as after a failure
#   KEEP       1: stop after the checks, leave the container running until Enter or end of input
# What is committed is what is installed: the plugin is cloned from this repository's HEAD.
set -euo pipefail
cd "$(dirname "$0")/../.."
WORK=$(realpath -m "${WORK:-$PWD/.devstack}")
RELEASE=${RELEASE:-bookworm} BRANCH=${BRANCH:-master} REUSE=${REUSE:-0} TIMES=${TIMES:-1} GIT_BASE=${GIT_BASE:-https://opendev.org}
VENV=${VENV:-$PWD/.venv} TEMPEST=${TEMPEST:-'pondstack_tempest.*smoke'}
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

down() { container_down; network_down; }
trap down EXIT
trap 'exit 130' INT TERM

# What the container finds below /srv: the repositories, if they are here, the plugin, the image.
base=$GIT_BASE
bind=()
if [ -d "$GIT_BASE" ]; then
    base=file:///srv/git
    bind=(--bind-ro="$(realpath "$GIT_BASE"):/srv/git")
    mkdir -p "$WORK/srv/git"
fi
rm -rf "$WORK/srv/pondstack.git"
git clone -q --bare . "$WORK/srv/pondstack.git" || die "git clone of the plugin"
git -C "$WORK/srv/pondstack.git" update-ref refs/heads/master "$(git rev-parse HEAD)"
git -C "$WORK/srv/pondstack.git" symbolic-ref HEAD refs/heads/master
devstack/tools/image.sh "$VENV/share/pondstack/vmlinuz" pondstack/rack/templates/init.sh \
    "$WORK/srv/pond-guest-x86_64-uec.tar.gz" || die "building the guest's image"
cp devstack/tools/guest.sh devstack/tools/leftovers.sh "$WORK/srv/"

# step NAME SCRIPT: a line of shell as the user stack, timed; its output goes to a log of its own.
step() {
    local begun=$SECONDS
    # Waited for, so that a signal ends it all at once.
    as_stack "$2" >"$WORK/$1.log" 2>&1 &
    if ! wait $!; then
        tail -n 25 "$WORK/$1.log"
        die "$1; its log: $WORK/$1.log"
    fi
    say "$1" "$((SECONDS - begun)) s"
}

once() {
    make_root
    network_up
    sed -e "s|@ADDRESS@|$ADDRESS|; s|@GIT_BASE@|$base|" devstack/samples/container.conf >"$WORK/srv/local.conf"
    container_up "${bind[@]}"
    step clone "rm -rf devstack && git clone -q -b $BRANCH $base/openstack/devstack.git devstack && cp /srv/local.conf devstack/local.conf"
    step stack "cd devstack && ./stack.sh"
    step guest "/srv/guest.sh ~/devstack"
    sed 's/^/              /' "$WORK/guest.log"
    if [ -d tempest_tests ]; then
        # The venv that stack.sh made, by the constraints that it was made by.
        step tempest "cd tempest && export UPPER_CONSTRAINTS_FILE=/opt/stack/requirements/upper-constraints.txt &&
            tox -evenv-tempest -- tempest run --regex '$TEMPEST'"
        sed -n '/^Totals/,$p' "$WORK/tempest.log" | sed 's/^/              /'
    else
        say tempest "skipped: this tree has no tempest_tests"
    fi
    if [ "${KEEP:-0}" = 1 ]; then
        say kept "nsenter --target $LEADER --all runuser -l stack; Enter goes on"
        read -r || true
    fi
    step unstack "cd devstack && ./unstack.sh"
    step clean "cd devstack && ./clean.sh"
    in_container /srv/leftovers.sh /opt/stack >"$WORK/leftovers.log" || { cat "$WORK/leftovers.log"; die "clean.sh left these"; }
    say leftovers none
    container_down
    network_down
}

make_base
for ((turn = 1; turn <= TIMES; turn++)); do
    say turn "$turn of $TIMES, OpenStack from $GIT_BASE, $([ "$REUSE" = 1 ] && echo "the former root" || echo "a fresh root"), pondstack $(git rev-parse --short HEAD)"
    once
done
echo "devstack: $TIMES of $TIMES ended well"
