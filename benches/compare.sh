#!/usr/bin/env bash
# Holds walstat against pg_waldump, the codecs' own tools, cat and a bare pass, side by side on
# WAL that a real PostgreSQL server writes for it, and prints a Markdown table with the ratios
# that are required and whether they hold.
#
# Every comparison runs both sides in turn and takes medians, so the ratios hold on a busy
# machine better than the times do. Before a comparison the totals of both sides must be equal.
#
# Status: 0 all rows pass, 1 at least one fails, 2 usage or something missing.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'TEXT'
usage: benches/compare.sh [--rounds N] [--only CASE[,CASE...]] [--big] [--walstat BINARY]

  --rounds N    runs of each side, of which the median counts (default 9)
  --only CASE   images, tiny, who, when, kind, events, report, check, whatif, bare, segment, memory,
                growth, compressed, cold, pipe, scaling
  --big         memory over 10 GB and scaling to 8 GB: makes 10 GB of WAL, wants 24 GB of disk
  --walstat B   measure this binary instead of building one

The WAL is made once, with PostgreSQL 15 or later, and kept in target/bench-wal, or in the folder
that WALSTAT_BENCH_WAL names. Its sizes in MB are WALSTAT_BENCH_IMAGES (default 2048),
WALSTAT_BENCH_TINY (1100) and WALSTAT_BENCH_BULK (10240). Remove the folder to make it anew.
TEXT
}

fail() {
    echo "compare.sh: $*" >&2
    exit 2
}

read_options() {
    while [ $# -gt 0 ]; do
        case $1 in
            --rounds) rounds=${2:-}; shift ;;
            --only) IFS=, read -ra cases <<<"${2:-}"; shift ;;
            --walstat) walstat=${2:-}; shift ;;
            --big) big=true ;;
            -h | --help) usage; exit 0 ;;
            *) usage >&2; exit 2 ;;
        esac
        shift || fail 'an option lacks its value'
    done
    [[ $rounds =~ ^[1-9][0-9]*$ ]] || fail "--rounds wants a number, not '$rounds'"
    for name in "${cases[@]}"; do
        declare -F "case_$name" >/dev/null || fail "no case '$name' (see --help)"
    done
}

find_pg_waldump() {
    pg_waldump=$(printf '%s\n' /usr/lib/postgresql/*/bin/pg_waldump | sort -V | tail -n 1)
    [ -x "$pg_waldump" ] || pg_waldump=$(command -v pg_waldump) \
        || fail 'pg_waldump is neither in /usr/lib/postgresql/*/bin nor in PATH: install a PostgreSQL server, 15 or later'
}

build() {
    local target=${CARGO_TARGET_DIR:-$root/target}
    if [ -z "$walstat" ]; then
        cargo build --release --quiet --manifest-path "$root/Cargo.toml" || fail 'walstat does not build'
        walstat=$target/release/walstat
    fi
    [ -x "$walstat" ] || fail "$walstat is not a program"
    if [[ " ${cases[*]} " == *' bare '* ]]; then
        cargo build --release --quiet --manifest-path "$root/Cargo.toml" --example bare_pass || fail 'bare_pass does not build'
        bare_pass=$target/release/examples/bare_pass
    fi
}

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
wal=${WALSTAT_BENCH_WAL:-$root/target/bench-wal}
declare -A megabytes=(
    [images]=${WALSTAT_BENCH_IMAGES:-2048}
    [tiny]=${WALSTAT_BENCH_TINY:-1100}
    [bulk]=${WALSTAT_BENCH_BULK:-10240}
)
rounds=9 big=false walstat='' bare_pass=''
cases=(images tiny who when kind events report check whatif bare segment memory growth compressed cold pipe scaling)

# shellcheck source=benches/compare/measure.sh
. "$here/compare/measure.sh"
# shellcheck source=benches/compare/cases.sh
. "$here/compare/cases.sh"

read_options "$@"
# Cases that take long: fewer rounds.
few=$((rounds < 5 ? rounds : 5))
find_pg_waldump
build
mkdir -p "$wal"
# Beside the WAL, so that parts of it can be linked.
work=$(mktemp -d "$wal/run.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

read -r load _ </proc/loadavg
if awk -v load="$load" 'BEGIN { exit !(load > 0.5) }'; then
    echo "the machine is busy (load $load): rows with two threads show what was left of the second CPU" >&2
fi
echo "$("$walstat" --version), $("$pg_waldump" --version), $(nproc) CPUs, load $load, Linux $(uname -r), median of $rounds rounds"
echo
row work 'other side' walstat ratio required mark
row --- --- --- --- --- ---
for name in "${cases[@]}"; do
    "case_$name"
done
[ "$failures" -eq 0 ] || exit 1
