#!/usr/bin/env bash
# Makes a fixture with a server of tests/live/servers.sh and the server's own counts as its oracle.
#
#   tests/live/sample.sh MAJOR NAME       MAJOR 15 or later: pg_walinspect is the oracle
#
# Writes tests/fixtures/NAME: sample.toml, wal.tar.zst, wal-stats.tsv. The load is workload.sql at a
# tenth of its scale; the range begins at the first record of a segment and ends after a checkpoint.
# Needs psql and zstd.
set -euo pipefail
major=$1 name=$2
here=$(cd "$(dirname "$0")" && pwd)
bin=${WALSTAT_LIVE_SERVERS:-$here/../../target/live-servers}/$major/bin
out=$here/../fixtures/$name
work=$(mktemp -d); chmod 755 "$work"

# PostgreSQL refuses to run as root: then the server is run by "nobody".
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid=nobody --regid=nogroup --clear-groups); fi
server() { (cd "$work/run" && "${as[@]}" "$@" >>"$work/log" 2>&1) || { tail "$work/log" >&2; exit 1; }; }
sql() { psql -X -q -At -F $'\t' -v ON_ERROR_STOP=1 -h "$work/run" -U postgres -d postgres "$@"; }
cleanup() { [ -f "$work/run/data/postmaster.pid" ] && server "$bin/pg_ctl" -D "$work/run/data" -m immediate stop; rm -rf "$work"; }
trap cleanup EXIT

mkdir "$work/run" "$work/run/tablespace"
[ ${#as[@]} -eq 0 ] || chown -R nobody:nogroup "$work/run"
server "$bin/initdb" -N --no-locale -E UTF8 -A trust -U postgres --wal-segsize=1 -D "$work/run/data"
cat >>"$work/run/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$work/run'
fsync = off
autovacuum = off
max_prepared_transactions = 5
wal_keep_size = 1GB
max_replication_slots = 5
CONF
server "$bin/pg_ctl" -w -D "$work/run/data" start

sql -c 'CREATE EXTENSION pg_walinspect'
sql -c 'SELECT pg_switch_wal()' >/dev/null
start=$(sql -c 'SELECT pg_current_wal_insert_lsn()')
timeline=$(sql -c 'SELECT timeline_id FROM pg_control_checkpoint()')
first=$(sql -c "SELECT pg_walfile_name('$start')")
sql -v tablespace="$work/run/tablespace" -v scale=10 -v database=false -f "$here/workload.sql"
sql -c CHECKPOINT
end=$(sql -c 'SELECT pg_current_wal_insert_lsn()')
version=$(sql -c 'SHOW server_version')
mkdir -p "$out"
{
  printf 'record\tcount\trecord_bytes\tfpi_bytes\ttotal_bytes\n'
  sql -c "SELECT \"resource_manager/record_type\", count, record_size, fpi_size, combined_size
          FROM pg_get_wal_stats('$start', '$end', true)"
} >"$out/wal-stats.tsv"
server "$bin/pg_ctl" -w -D "$work/run/data" -m fast stop

mkdir "$work/$name"
for segment in "$work/run/data/pg_wal/"????????????????????????; do
  [[ ${segment##*/} < $first ]] || cp "$segment" "$work/$name/"
done
last=$(ls "$work/$name" | tail -1)
tar -C "$work" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=u=rw,g=r,o=r \
  -cf - $(cd "$work" && ls -d "$name"/*) | zstd --ultra -22 --long=27 -q -f -o "$out/wal.tar.zst"
cat >"$out/sample.toml" <<TOML
# What this sample is; see ../README.md.
sample = "$name"
release = "$major"
oracle = "pg_get_wal_stats (PostgreSQL) $version"
archive = "$name/wal.tar.zst"
timeline = $timeline
start = "$start"
end = "$end"
first_segment = "$first"
last_segment = "$last"
all_stats = false
note = "Made by tests/live/sample.sh: a tenth of the load of tests/live/workload.sql; 1 MB segments; ends with a shutdown, then zeros."
TOML
echo "sample.sh: $out: $start to $end, $(du -k "$out/wal.tar.zst" | cut -f1) kB" >&2
