#!/usr/bin/env bash
# Writes sample configuration and policy files into etc/ (or the folder given), from the code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${VENV:-.venv}/bin
folder=${1:-etc}
mkdir -p "$folder"
for source in etc/oslo-config-generator/*.conf; do
    "$bin/oslo-config-generator" --config-file "$source" --output-file "$folder/$(basename "$source").sample"
done
"$bin/oslopolicy-sample-generator" --config-file etc/oslo-policy-generator/pondstack.conf \
    --output-file "$folder/policy.yaml.sample"
ls -1 "$folder"/*.sample
