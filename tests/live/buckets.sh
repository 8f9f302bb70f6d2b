#!/usr/bin/env bash
# Fetches servers that speak the stores' own protocols, for the tests of object storage: moto for S3 (and for the
# XML interface of Google Cloud Storage, which is S3's), Azurite for Azure.
#
#   tests/live/buckets.sh [DIR]      default: $WALSTAT_LIVE_BUCKETS, else target/live-buckets
#
# From PyPI and npm, releases fixed. What is there already is left alone. Needs python3 with venv, and npm.
set -euo pipefail

readonly moto=5.2.5 azurite=3.35.0

root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${1:-${WALSTAT_LIVE_BUCKETS:-$root/target/live-buckets}}
mkdir -p "$cache"

if [ ! -x "$cache/moto-$moto/bin/moto_server" ]; then
  python3 -m venv "$cache/moto-$moto"
  "$cache/moto-$moto/bin/pip" install --quiet --no-cache-dir --no-compile --disable-pip-version-check \
    "moto[s3,server]==$moto"
fi
ln -sfn "moto-$moto" "$cache/moto"

if [ ! -x "$cache/azurite-$azurite/node_modules/.bin/azurite-blob" ]; then
  mkdir -p "$cache/azurite-$azurite"
  npm install --silent --no-audit --no-fund --prefix "$cache/azurite-$azurite" "azurite@$azurite"
fi
ln -sfn "azurite-$azurite" "$cache/azurite"
chmod -R a+rX "$cache"
