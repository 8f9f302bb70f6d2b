#!/usr/bin/env bash
# Makes WAL for benchmarks with a real, throw-away PostgreSQL server.
#
#   make_wal.sh images|tiny|bulk OUT_DIR MEGABYTES
#
#   images  pgbench with a checkpoint every few seconds: about nine bytes in ten are full page images
#   tiny    one INSERT ... SELECT of a single integer column: 59-byte records and hardly an image
#   bulk    INSERT ... SELECT of 200-byte rows, table after table: quick to make in any size
#
# OUT_DIR receives whole 16 MB segments: the first begins with a record, the last ends with
# XLOG_SWITCH, so that every reader agrees on where the WAL begins and ends. It appears only
# when it is complete. The server needs about twice the space below TMPDIR (default /tmp) and
# leaves nothing behind. Not for making test fixtures: what is in this WAL differs a
# little with every run.
set -euo pipefail

usage() {
    echo "usage: ${0##*/} images|tiny|bulk OUT_DIR MEGABYTES" >&2
    exit 2
}

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# The folder of the newest installed server, or of the one in PATH.
find_server() {
    local initdb
    initdb=$(command -v initdb || printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
    [ -x "$initdb" ] || fail "no PostgreSQL server: initdb is neither in PATH nor in /usr/lib/postgresql/*/bin"
    # A link in PATH may stand alone: psql and pgbench are beside what it points to.
    dirname "$(readlink -f "$initdb")"
}

# The server refuses to run as root.
as_server_user() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd "$scratch" && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

sql() {
    as_server_user "$bin/psql" -XAtq -v ON_ERROR_STOP=1 -h "$scratch" -d postgres -c "$1"
}

start_server() {
    if [ "$(id -u)" -eq 0 ]; then
        id postgres >/dev/null 2>&1 || fail "run as root, but there is no user postgres to run the server as"
        chown postgres "$scratch"
    fi
    as_server_user "$bin/initdb" -D "$data" -A trust -U postgres -E UTF8 --locale=C --no-sync >"$scratch.log" 2>&1 \
        || fail "initdb failed: $(tail -n 3 "$scratch.log")"
    # Nothing is fsynced: the cluster is thrown away. wal_keep_size keeps every segment.
    as_server_user tee -a "$data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$scratch'
fsync = off
synchronous_commit = off
full_page_writes = on
wal_compression = off
wal_level = replica
shared_buffers = 1GB
max_wal_size = 100GB
wal_keep_size = 100GB
checkpoint_timeout = 1h
checkpoint_completion_target = 0
autovacuum = $([ "$kind" = images ] && echo on || echo off)
CONF
    as_server_user "$bin/pg_ctl" -D "$data" -w -l "$data/server.log" -o "-c log_checkpoints=off" start >>"$scratch.log" 2>&1 \
        || fail "the server did not start: $(tail -n 3 "$scratch.log")"
}

stop_server() {
    if [ -f "$data/postmaster.pid" ]; then
        as_server_user "$bin/pg_ctl" -D "$data" -w -m fast stop >/dev/null 2>&1 || true
    fi
}

clean_up() {
    stop_server
    rm -rf "$scratch" "$scratch.log" "$out.partial"
}

# Megabytes of WAL written since the position "$begin".
written() {
    sql "SELECT (pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$begin') / 1048576)::int"
}

prepare_images() {
    "$bin/pgbench" --version >/dev/null 2>&1 || fail "pgbench is missing from $bin"
    as_server_user "$bin/pgbench" -h "$scratch" -U postgres -i -q -s 50 postgres >>"$scratch.log" 2>&1
}

# 100 000 transactions between checkpoints touch about two thirds of the 82 000 pages of
# pgbench_accounts: that ratio gives the share of images, on any machine.
write_images() {
    local piece=0
    while [ "$(written)" -lt "$megabytes" ]; do
        if [ $((piece % 4)) -eq 0 ]; then sql CHECKPOINT; fi
        as_server_user "$bin/pgbench" -h "$scratch" -U postgres -n -c 5 -t 5000 postgres >>"$scratch.log" 2>&1
        piece=$((piece + 1))
    done
}

prepare_tiny() {
    sql 'CREATE TABLE tiny (id int)'
}

# A record of 59 bytes takes 64, and page headers take one byte in 340.
write_tiny() {
    sql "INSERT INTO tiny SELECT generate_series(1, $((megabytes * 1048576 / 64)))"
}

prepare_bulk() {
    sql 'CREATE TABLE bulk (id int, filler text)'
}

# TRUNCATE keeps the table small on disk and gives each piece a relation of its own.
write_bulk() {
    while [ "$(written)" -lt "$megabytes" ]; do
        sql "INSERT INTO bulk SELECT i, repeat('x', 200) FROM generate_series(1, 1000000) i"
        sql 'TRUNCATE bulk'
    done
}

# Moves the segments after "$1" up to "$2" to the output folder.
deliver() {
    local segment name
    rm -rf "$out.partial"
    mkdir -p "$out.partial"
    for segment in "$data"/pg_wal/????????????????????????; do
        name=${segment##*/}
        if [[ "$name" > "$1" && ! "$name" > "$2" ]]; then
            mv "$segment" "$out.partial/"
        fi
    done
    if [ "$(id -u)" -eq 0 ]; then chown -R root: "$out.partial"; fi
    chmod -R a+rX "$out.partial"
    mv "$out.partial" "$out"
}

[ $# -eq 3 ] || usage
kind=$1 out=$2 megabytes=$3
case $kind in images | tiny | bulk) ;; *) usage ;; esac
[[ $megabytes =~ ^[1-9][0-9]*$ ]] || usage
[ ! -e "$out" ] || fail "$out exists already"

bin=$(find_server)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/walstat-bench.XXXXXX")
data=$scratch/data
trap clean_up EXIT
trap 'exit 130' INT TERM

start_server
"prepare_$kind"
before=$(sql 'SELECT pg_walfile_name(pg_switch_wal())')
begin=$(sql 'SELECT pg_current_wal_insert_lsn()')
"write_$kind"
last=$(sql 'SELECT pg_walfile_name(pg_switch_wal())')
stop_server
deliver "$before" "$last"
