# Measuring for compare.sh: times side by side, peak memory, an empty cache, rows of the table.
# Sourced, not run. What is measured is in cases.sh.
#
# Uses $work (a scratch folder), $rounds and $walstat of compare.sh.
#
# The names that look unset here are compare.sh's own.
# shellcheck shell=bash disable=SC2154

failures=0
median_wall=() median_cpu=()

# Runs "$1" with its output thrown away; appends its wall and CPU microseconds to the file "$2".
time_once() {
    local start end user system status=0
    local TIMEFORMAT='%3U %3S'
    start=${EPOCHREALTIME/[.,]/}
    { time "$1" >/dev/null 2>"$work/errors"; } 2>"$work/cpu" || status=$?
    end=${EPOCHREALTIME/[.,]/}
    if [ "$status" -ne 0 ]; then
        echo "$1 ended with status $status: $(tail -n 1 "$work/errors")" >&2
        return 1
    fi
    read -r user system <"$work/cpu"
    user=${user/[.,]/} system=${system/[.,]/}
    echo "$((end - start)) $(((10#$user + 10#$system) * 1000))" >>"$2"
}

# The middle value of column "$1" of the file "$2".
median() {
    cut -d ' ' -f "$1" "$2" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# Times the functions "$2"... in turn, "$1" rounds after one that is not counted, so that a slow
# moment of the machine hits all of them. Before each run it calls $before_each, if set.
side_by_side() {
    local count=$1 round index name
    shift
    rm -f "$work"/times.*
    for ((round = 0; round <= count; round++)); do
        index=0
        for name in "$@"; do
            ${before_each:+"$before_each"}
            time_once "$name" "$work/times.$index" || return 1
            if [ "$round" -eq 0 ]; then rm "$work/times.$index"; fi
            index=$((index + 1))
        done
    done
    median_wall=() median_cpu=()
    for ((index = 0; index < $#; index++)); do
        median_wall+=("$(median 1 "$work/times.$index")")
        median_cpu+=("$(median 2 "$work/times.$index")")
    done
}

# Is the number "$1" at least "$2"? Both may have decimals.
at_least() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'
}

# "$1" / "$2" with "$3" decimals.
quotient() {
    awk -v a="$1" -v b="$2" -v d="$3" 'BEGIN { printf "%.*f", d, a / b }'
}

# Wall and CPU seconds of the median run "$1", for people.
seconds() {
    printf '%s s (CPU %s)' "$(quotient "${median_wall[$1]}" 1000000 4)" "$(quotient "${median_cpu[$1]}" 1000000 3)"
}

# One row: work, the other side, walstat, ratio, required, mark.
row() {
    if [[ ${*: -1} == FAIL* ]]; then failures=$((failures + 1)); fi
    printf '| %s | %s | %s | %s | %s | %s |\n' "$@"
}

# Row "$1": the rival "$2" (function "$3") against walstat (function "$4"), which is to be at
# least "$5" times as fast, over "$6" rounds.
compare() {
    local ratio mark=pass
    if ! side_by_side "${6:-$rounds}" "$3" "$4"; then
        row "$1" "$2" '–' '–' "≥ $5" 'FAIL: did not run'
        return
    fi
    ratio=$(quotient "${median_wall[0]}" "${median_wall[1]}" 3)
    at_least "$ratio" "$5" || mark=FAIL
    row "$1" "$2 $(seconds 0)" "$(seconds 1)" "$ratio" "≥ $5" "$mark"
}

# "count record_bytes fpi_bytes" by pg_waldump, over the segments "$@".
pg_totals() {
    "$pg_waldump" --stats=record "${@:1:1}" "${@: -1}" 2>/dev/null | awk '$1 == "Total" { print $2, $3, $5 }'
}

# The same by walstat: the function "$1" prints its JSON.
walstat_totals() {
    local totals key
    totals=$("$1" 2>"$work/errors" | sed -n '/^  "totals": {/,/}/p') || true
    for key in count record_bytes fpi_bytes; do
        sed -n "s/^ *\"$key\": \([0-9]*\).*/\1/p" <<<"$totals"
    done | paste -sd ' '
}

# Fast and wrong is no result: row "$1" fails unless the JSON that the function "$2" prints has
# the totals of pg_waldump over the segments "$3"...
same_totals() {
    local label=$1 json=$2 expected found
    shift 2
    expected=$(pg_totals "$@")
    found=$(walstat_totals "$json")
    [ -n "$expected" ] || fail "pg_waldump prints no totals over $1 ... ${*: -1}"
    if [ "$found" != "$expected" ]; then
        row "$label" "totals $expected" "totals ${found:-none: $(tail -n 1 "$work/errors")}" '–' equal 'FAIL: other totals'
        return 1
    fi
}

# Drops the segments "$@" from the page cache, and says so if they stay (tmpfs, for one).
evict() {
    local file
    for file in "$@"; do
        dd if="$file" iflag=nocache count=0 status=none
    done
    if command -v fincore >/dev/null && fincore -nb -o RES "$@" | awk '{ n += $1 } END { exit !(n > 1048576) }'; then
        echo "the files stay in the page cache: the cold figures below are not cold" >&2
    fi
}

# Peak anonymous memory and peak resident memory of a program, in kB: "anon resident". Of a function it would be
# that of the shell that runs it.
# The first is sampled every two milliseconds, the second is the kernel's own high-water mark,
# which includes the program's file pages and is therefore an upper bound of the first.
peak_memory() {
    local pid key value anon=0 resident=0
    [ "$(type -t "$1")" = file ] || fail "peak_memory: $1 is not a program"
    "$@" >/dev/null 2>"$work/errors" &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        while read -r key value _; do
            case $key in
                RssAnon:) if [ "$value" -gt "$anon" ]; then anon=$value; fi ;;
                VmHWM:) resident=$value ;;
            esac
        done <"/proc/$pid/status" 2>/dev/null || true
        sleep 0.002
    done 2>/dev/null
    wait "$pid" || return 1
    echo "$anon $resident"
}

# The first "$1" CPUs that this process may use, as taskset wants them.
first_cpus() {
    local piece last
    taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r piece last; do
        seq "$piece" "${last:-$piece}"
    done | sed -n "1,$1p" | paste -sd,
}
