#!/usr/bin/env bash
# Counts the instructions that walstat takes for a record, with valgrind's cachegrind (callgrind counts the
# same in twice the time), and holds them against the figures in instructions.toml. Instructions do not wobble as times do, so this
# finds on any machine what makes the loop slower.
#
# The start of the process is taken out: every figure is the difference of two runs over more and
# less of the same WAL, divided by the difference of their records. valgrind knows no AVX-512, so
# the checksums are those of the SSE 4.2 path; the figures without checksums are of everything else.
# The program is the one that the tests have built: what goes over the records is optimised in it, and
# checks for overflow. A new compiler may shift the figures: then they are written anew with --update.
#
# Status: 0 no figure is more than 5 % above, 1 one is, 2 usage or something missing.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'TEXT'
usage: benches/instructions.sh [--update] [--walstat BINARY]

  --update      write what was counted into benches/instructions.toml
  --walstat B   measure this binary instead of building one
TEXT
}

fail() {
    echo "instructions.sh: $*" >&2
    exit 2
}

root=$(cd "$(dirname "$0")/.." && pwd)
figures=$root/benches/instructions.toml
walstat='' update=false
while [ $# -gt 0 ]; do
    case $1 in
        --update) update=true ;;
        --walstat) walstat=${2:-}; shift ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift || fail 'an option lacks its value'
done
[ "$(uname -m)" = x86_64 ] || fail 'the figures are of x86-64'
for tool in valgrind zstd cargo; do
    command -v "$tool" >/dev/null || fail "$tool is not installed"
done

target=${CARGO_TARGET_DIR:-$root/target}
manifest=$root/Cargo.toml
# Both at once, as the tests build them: for the program alone some crates would be built with fewer features.
# Not incrementally, which inlines less: tiny records took 14 % more in check.
export CARGO_INCREMENTAL=0
cargo build --quiet --manifest-path "$manifest" --all-features --bin walstat --example tiny_wal ||
    fail 'walstat does not build'
walstat=${walstat:-$target/debug/walstat}
[ -x "$walstat" ] || fail "$walstat is not a program"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# make_wal: WAL of each kind, less and more of it, and by how many records it is more.
declare -A records
make_wal() {
    mkdir "$work"/{tiny,mixed}-{less,more}
    "$target/debug/examples/tiny_wal" "$work/tiny-less" 1
    "$target/debug/examples/tiny_wal" "$work/tiny-more" 5
    zstd -dq "$root"/tests/fixtures/pg15-mixed/0*.zst --output-dir-flat "$work/mixed-more"
    ln "$work"/mixed-more/00000001000000000000000[67] "$work/mixed-less"
    for kind in tiny mixed; do
        records[$kind]=$(($(count "$work/$kind-more") - $(count "$work/$kind-less")))
        [ "${records[$kind]}" -gt 10000 ] ||
            fail "$kind: ${records[$kind]} records are too few to tell"
    done
}

# count DIRECTORY: records in it.
count() {
    "$walstat" "$1" --stats=record --format csv --threads 1 |
        awk -F, '
            NR == 1 { for (i = 1; i <= NF; i++) if ($i == "count") column = i }
            NR > 1 { sum += $column }
            END { print sum + 0 }'
}

# collect ARGUMENT...: instructions of a whole run.
collect() {
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file="$work/profile" \
        "$walstat" "$@" --threads 1 --no-mmap 2>&1 >"$work/out" |
        awk '/I +refs:/ { gsub(",", "", $NF); print $NF; found = 1 } END { exit !found }' ||
        fail "valgrind says nothing of: walstat $*"
}

# measure KIND ARGUMENT...: instructions a record, with one decimal; the directory comes last.
measure() {
    local kind=$1 less more
    shift
    less=$(collect "$@" "$work/$kind-less")
    more=$(collect "$@" "$work/$kind-more")
    awk -v i=$((more - less)) -v r="${records[$kind]}" 'BEGIN { printf "%.1f\n", i / r }'
}

# judge NAME FOUND: one row; 1 if it is more than 5 % above the committed figure.
judge() {
    local committed
    committed=$(awk -v name="$1" '$1 == name && $2 == "=" { print $3 }' "$figures")
    [ -n "$committed" ] || fail "$figures has no figure for $1"
    awk -v name="$1" -v found="$2" -v committed="$committed" 'BEGIN {
        change = 100 * (found / committed - 1)
        verdict = "ok"
        if (change > 5) verdict = "SLOWER: find out why"
        if (change < -5) verdict = "faster: lower the figure with --update"
        printf "%-18s %8.1f %8.1f %+7.1f %%  %s\n", name, found, committed, change, verdict
        exit change > 5
    }'
}

# What is measured, over each kind of WAL: how the figure's name goes on, and the arguments.
works=(
    ':--stats=record'
    '_unverified:--stats=record --no-verify-checksums'
    '_who:--stats=relation,transaction'
    '_when:--stats=record,timeline,checkpoint'
    '_check:check'
    '_report:'
    '_whatif:whatif --checkpoint-every 2x'
)
make_wal
names=()
declare -A found
for kind in tiny mixed; do
    for work_on in "${works[@]}"; do
        name=$kind${work_on%%:*}
        read -ra arguments <<<"${work_on#*:}"
        names+=("$name")
        found[$name]=$(measure "$kind" "${arguments[@]}")
    done
done

if $update; then
    {
        sed -n '/^#/p' "$figures"
        for name in "${names[@]}"; do echo "$name = ${found[$name]}"; done
    } >"$work/figures"
    cp "$work/figures" "$figures"
fi
printf '%-18s %8s %8s\n' 'a record' found figure
status=0
for name in "${names[@]}"; do
    judge "$name" "${found[$name]}" || status=1
done
exit $status
