#!/usr/bin/env bash
# Holds `walstat whatif` against real servers: each load is run once as the base and again under
# other settings; the WAL of the base is asked what the other runs would write, and the answer is
# compared with what they wrote. Prints the rows of docs/whatif-runs.tsv.
#
#   benches/whatif/run.sh [LOAD...]      default: all of benches/whatif/loads.tsv
#
# Needs psql and pgbench 15 or later and a server: Debian's in /usr/lib/postgresql, those of other
# releases from tests/live/servers.sh (WALSTAT_LIVE_SERVERS). What is written goes to
# WALSTAT_WHATIF_WORK (default /var/tmp/walstat-whatif) and stays there: a run that is there already
# is not made again.
set -euo pipefail
export LC_ALL=C PGHOST PGUSER=postgres PGDATABASE=postgres PGTZ=UTC

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WALSTAT_WHATIF_WORK:-/var/tmp/walstat-whatif}
servers=${WALSTAT_LIVE_SERVERS:-/var/tmp/walstat-live-servers}
walstat=${WALSTAT:-$root/target/release/walstat}
PGHOST=$work

# A server does not run as root.
as_server() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

# program RELEASE NAME: of that release.
program() {
    local debian=/usr/lib/postgresql/$1/bin/$2
    if [ -x "$debian" ]; then echo "$debian"; else echo "$servers/$1/bin/$2"; fi
}

common_settings() {
    cat <<TEXT
listen_addresses=''
unix_socket_directories='$work'
fsync=off
shared_buffers=256MB
autovacuum=off
bgwriter_lru_maxpages=0
checkpoint_timeout=1h
checkpoint_completion_target=0.9
max_wal_size=100GB
min_wal_size=$((2 * segment_mb))MB
wal_level=replica
max_wal_senders=0
synchronous_commit=on
max_parallel_workers_per_gather=0
max_prepared_transactions=10
log_checkpoints=on
timezone=UTC
TEXT
    if [ "${release%%.*}" -ge 13 ]; then echo 'wal_keep_size=100GB'; else echo 'wal_keep_segments=100000'; fi
    if [ "${release%%.*}" -ge 11 ]; then echo 'jit=off'; fi
    if [ "${release%%.*}" -ge 12 ]; then echo 'wal_recycle=off'; fi
}

running=
start() { running=$1; as_server "$(program "$release" pg_ctl)" -D "$1" -w -l "$1/log" -s start; }
stop() { as_server "$(program "$release" pg_ctl)" -D "$1" -w -m fast -s stop; running=; }
# A server that is left when something failed.
trap '[ -z "$running" ] || stop "$running"' EXIT
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

insert_lsn() {
    local function=pg_current_wal_insert_lsn
    [ "${release%%.*}" -ge 10 ] || function=pg_current_xlog_insert_location
    sql -c "select $function()"
}

# The cluster that all runs of a load begin with.
prepare() {
    local begin=$work/$load/begin options=()
    [ -d "$begin" ] && return
    rm -rf "$work/$load"
    as_server mkdir -p "$work/$load"
    if [ "${release%%.*}" -ge 11 ]; then options+=(--wal-segsize=$segment_mb); fi
    case $initdb in -) ;; *) options+=("$initdb") ;; esac
    as_server "$(program "$release" initdb)" -D "$begin.new" -E UTF8 --locale=C -U postgres -A trust \
        --no-sync "${options[@]}" >/dev/null
    common_settings | as_server tee -a "$begin.new/postgresql.conf" >/dev/null
    start "$begin.new"
    case $script in
        tpcb*) pgbench -q -i -s 2 -F 100 2>/dev/null ;;
        *) sql -f "$here/load/$script.init.sql" >/dev/null ;;
    esac
    sql -c 'vacuum freeze' -c analyze -c checkpoint -c checkpoint
    stop "$begin.new"
    as_server mv "$begin.new" "$begin"
}

# One unit of the work.
unit() {
    local file=$here/load/$script.unit
    if [ "$script" = tpcb ]; then
        pgbench -n -c "$clients" -j 1 -t "$transactions" --random-seed=$((1000 + $1)) >/dev/null 2>&1
    elif [ -f "$file.pgbench" ]; then
        pgbench -n -c "$clients" -j 1 -t "$transactions" --random-seed=$((1000 + $1)) -f "$file.pgbench" \
            >/dev/null 2>&1
    else
        sql -v unit="$1" -f "$file.sql" >/dev/null
    fi
}

# real RUN SETTINGS SPACING: runs the load, unless that was done already, and leaves RUN.range,
# start and end, and RUN.units, the end of each unit.
real() {
    local directory=$work/$load/$1 range=$work/$load/$1.range start end i
    [ -f "$range" ] && return
    rm -rf "$directory" "$work/$load/$1.units"
    as_server cp -a "$work/$load/begin" "$directory"
    tr ' ' '\n' <<<"$settings $2" | as_server tee -a "$directory/postgresql.conf" >/dev/null
    start "$directory"
    sql -c checkpoint
    start=$(insert_lsn)
    for ((i = 1; i <= units; i++)); do
        unit "$i"
        insert_lsn | as_server tee -a "$work/$load/$1.units" >/dev/null
        if [ "$3" != none ] && [ $((i % $3)) = 0 ] && [ "$i" -lt "$units" ]; then sql -c checkpoint; fi
        if [ -f "$here/load/$script.after.sql" ]; then sql -f "$here/load/$script.after.sql" >/dev/null; fi
    done
    end=$(insert_lsn)
    stop "$directory"
    echo "$start $end" | as_server tee "$range" >/dev/null
    case "$1 ${WALSTAT_WHATIF_KEEP:-}" in base*) ;; *" ") as_server rm -rf "$directory" ;; esac
}

# bytes RUN: LSN distance of a run.
bytes() {
    local start end
    read -r start end <"$work/$load/$1.range"
    echo $(($(number "$end") - $(number "$start")))
}

number() { echo $(((16#${1%/*} << 32) + 16#${1#*/})); }

# predicted KEY JSON: of the last scenario.
predicted() { grep -o "\"$1\": [-0-9.]*" <<<"$2" | tail -n 1 | cut -d' ' -f2; }

predict() {
    local start end directory=$work/$load/base
    read -r start end <"$work/$load/base.range"
    [ ! -d "$directory/pg_xlog" ] || directory=$directory/pg_xlog
    [ ! -d "$directory/pg_wal" ] || directory=$directory/pg_wal
    # shellcheck disable=SC2086
    "$walstat" whatif -f json -s "$start" -e "$end" $1 "$directory" || [ $? = 4 ]
}

row() {
    local run=$1 options=$2 id=$3 json real guess check exact
    json=$(predict "$options")
    real=$(bytes "$run")
    guess=$(predicted predicted_bytes "$json")
    exact=$(predicted exact_bytes "$json")
    check=$(grep -o '"difference_bytes": [-0-9]*' <<<"$json" | head -n 1 | cut -d' ' -f2)
    awk -v load="$load" -v run="$run" -v options="$id" -v real="$real" -v guess="$guess" \
        -v exact="$exact" -v low="$(predicted low_bytes "$json")" -v high="$(predicted high_bytes "$json")" \
        -v check="$check" -v base="$(bytes base)" -v again="$(bytes again)" 'BEGIN {
            inside = low <= real && real <= high ? "yes" : "no"
            spread = 100 * (again > base ? again - base : base - again) / base
            printf "%s\t%s\t%d\t%d\t%.2f\t%s\t%d\t%.4f\n", load, options, real, guess,
                100 * exact / guess, inside, check, spread
        }'
}

# One load: its base twice, then its runs.
measure() {
    read -r _ release script units spacing transactions clients initdb settings runs < <(
        awk -F'\t' -v load="$load" '$1 == load' "$here/loads.tsv" | tr '\t' ' ')
    segment_mb=1
    [ "${release%%.*}" -ge 11 ] || segment_mb=16
    settings=${settings//;/ }
    [ "$settings" != - ] || settings=
    prepare
    real base '' "$spacing"
    real again '' "$spacing"
    local id
    for id in ${runs//,/ }; do
        read -r _ change every options < <(
            awk -F'\t' -v id="$id" '$1 == id' "$here/runs.tsv" | sed 's/\t/ /g')
        [ "$change" != - ] || change=
        case $every in
            base) every=$spacing ;;
            none) ;;
            *) every=$(awk -v s="$spacing" -v f="$every" 'BEGIN { print s * f }') ;;
        esac
        # Half of a distance in units is not half of it in commits.
        options=${options/UNITS/$(head -n -1 "$work/$load/base.units" | paste -sd,)}
        real "$id" "${change//;/ }" "$every"
        row "$id" "$options" "$id"
    done
}

[ -x "$walstat" ] || { echo "run.sh: $walstat is not there: cargo build --release" >&2; exit 2; }
mkdir -p "$work"
[ "$(id -u)" != 0 ] || chown postgres "$work"
loads=("$@")
[ ${#loads[@]} -gt 0 ] || mapfile -t loads < <(tail -n +2 "$here/loads.tsv" | cut -f1)
printf 'load\trun\treal_bytes\tpredicted_bytes\tcertain_percent\tin_range\tself_check_bytes\trepeat_percent\n'
for load in "${loads[@]}"; do measure; done
