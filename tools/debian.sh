# shellcheck shell=bash
# Where the machine gets Debian from; sourced by setup.sh and hardware.sh, which say `die` and where LOG is.
debian_key=/usr/share/keyrings/debian-archive-keyring.gpg

# Debian's own suites as the system has them, as lines of a sources.list; $1: the release, as in "bookworm".
debian_sources() {
    local suites="$1|stable"
    # What update would fetch is known before a machine's first update.
    apt-get update --print-uris 2>>"$LOG" |
        sed -n -E "s#^'(.*)/dists/(($suites)(-updates|-security)?)/main/binary-$(dpkg --print-architecture)/Packages.*#deb [signed-by=$debian_key] \\1 \\2 main#p" |
        sort -u
}

# The mirror of the release $1 among such lines (standard input).
debian_mirror() {
    awk -v c="$1" '($4 == c || $4 == "stable") && !seen {print $3; seen = 1}'
}
