# What compare.sh measures, one function a case, each printing rows of the table. Sourced, not run.
#
# A case sets $dir (a folder of segments), $files (its segments) and $threads; the functions that
# start with run_ are the commands timed, the others that print JSON are for the totals.
#
# The names that look unset or unused here are shared with compare.sh.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154

run_pg_waldump() { "$pg_waldump" --stats=record "${files[0]}" "${files[-1]}"; }
run_stats() { "$walstat" --stats=record -j"$threads" "$dir"; }
run_bare_pass() { "$bare_pass" "${files[@]}"; }
run_cat() { cat "${files[@]}"; }
run_cat_pipe() { cat "${files[@]}" | cat; }
run_stats_pipe() { cat "${files[@]}" | "$walstat" --stats=record -j"$threads" -; }

json_stats() { "$walstat" --stats=record -j"$threads" -f json "$dir"; }
json_pipe() { cat "${files[@]}" | "$walstat" --stats=record -j"$threads" -f json -; }

# Chooses the folder of segments of kind "$1", made when first asked for.
choose() {
    dir=$wal/$1
    if [ ! -d "$dir" ]; then
        echo "making ${megabytes[$1]} MB of WAL in $dir" >&2
        "$here/compare/make_wal.sh" "$1" "$dir" "${megabytes[$1]}" || fail "no WAL to measure with"
    fi
    files=("$dir"/????????????????????????)
}

# Makes $dir a folder of its own with the first "$1" segments, as links to the same pages.
choose_first() {
    local subset=$work/first-$1-${dir##*/}
    files=("${files[@]:0:$1}")
    if [ ! -d "$subset" ]; then
        mkdir "$subset"
        ln "${files[@]}" "$subset/"
    fi
    dir=$subset
    files=("$dir"/*)
}

# Size of the chosen segments in GB.
gigabytes() {
    quotient "$(stat -Lc %s "${files[@]}" | awk '{ n += $1 } END { print n }')" 1000000000 1
}

# "$1": kind; "$2": least ratio on one thread; "$3": on two.
case_records() {
    local dir files threads required label
    choose "$1"
    for threads in 1 2; do
        label="$1, $(gigabytes) GB, \`--stats=record -j$threads\`"
        required=${*:threads+1:1}
        if [ "$threads" -gt "$(nproc)" ]; then
            row "$label" pg_waldump '–' '–' "≥ $required" 'NOT MEASURED: one CPU'
        elif same_totals "$label" json_stats "${files[@]}"; then
            compare "$label" pg_waldump run_pg_waldump run_stats "$required"
        fi
    done
}

case_images() { case_records images 4.3 8.0; }
case_tiny() { case_records tiny 4.6 8.5; }

run_asked() { "$walstat" "${asked[@]}" "$@" -j"$threads" "$dir"; }
run_asked_1() { "$walstat" "${asked[@]}" -j1 "$dir"; }
json_asked() { run_asked -f json; }

# "$1": least ratio of walstat on one thread to `pg_waldump --stats=record`, images; "$2": the same, tiny;
# "$3": what prints the totals; "$4"...: what walstat is asked. On two threads each is to take 1.85 times
# as little as on one.
case_asked() {
    local dir files threads kind label json=$3
    local -A least=([images]=$1 [tiny]=$2)
    shift 3
    local asked=("$@")
    for kind in images tiny; do
        choose "$kind"
        threads=1
        label="$kind, \`walstat ${asked[*]}\`"
        if same_totals "$label" "$json" "${files[@]}"; then
            compare "$label, \`-j1\`" 'pg_waldump `--stats=record`' run_pg_waldump run_asked "${least[$kind]}"
        fi
        threads=2
        if [ "$(nproc)" -lt 2 ]; then
            row "$label, two threads to one" '`-j1`' '–' '–' '≥ 1.85' 'NOT MEASURED: one CPU'
        else
            compare "$label, two threads to one" '`-j1`' run_asked_1 run_asked 1.85
        fi
    done
}

# The report has who and when in it, with names and what updates cost.
case_report() { case_asked 2.2 2.8 json_asked; }
case_who() { case_asked 2.5 2.9 json_asked --stats=relation,transaction; }
case_when() { case_asked 3.0 3.4 json_asked --stats=record,timeline,checkpoint; }
case_kind() { case_asked 2 2 json_asked --stats=kind; }
# These have no totals of their own.
case_events() { case_asked 2 2 json_stats events; }
case_check() { case_asked 4.3 4.6 json_stats check; }
case_whatif() { case_asked 0.8 1.2 json_stats whatif --checkpoint-every 2x; }

# The whole process stands for "inside": start and exit count against walstat.
case_bare() {
    local dir files threads=1
    choose images
    if same_totals 'images against a bare pass' json_stats "${files[@]}"; then
        compare 'images, `--stats=record -j1` against read and checksum alone' 'bare pass' run_bare_pass run_stats 0.85
    fi
}

# A few milliseconds each: more rounds.
case_segment() {
    local dir files threads=1 kind label
    for kind in images tiny; do
        label="one 16 MB segment of $kind"
        choose "$kind"
        files=("${files[5]}")
        dir=${files[0]}
        if same_totals "$label" json_stats "${files[@]}"; then
            compare "$label" pg_waldump run_pg_waldump run_stats 1.0 $((rounds * 5))
        fi
    done
}

case_memory() {
    local dir files threads anon resident limit mark label
    if "$big"; then choose bulk; else choose images; fi
    for threads in 1 2; do
        limit=$((14 + 2 * threads))
        label="peak anonymous memory over $(gigabytes) GB, \`-j$threads\`"
        if ! read -r anon resident < <(peak_memory "$walstat" --stats=record -j"$threads" "$dir"); then
            row "$label" '–' '–' '–' "< $limit MB" 'FAIL: did not run'
            continue
        fi
        mark=pass
        "$big" || mark='pass, but 10 GB NOT MEASURED: --big'
        [ "$anon" -lt $((limit * 1000000 / 1024)) ] || mark=FAIL
        row "$label" '–' "$(quotient "$anon" 976.5625 1) MB (resident $(quotient "$resident" 976.5625 1))" '–' "< $limit MB" "$mark"
    done
}

# Of a tenth, a fifth, two fifths and all of the WAL a GB costs the same, and memory stays below its limit.
# "$1": the limit in MB; "$2"...: what walstat is asked.
case_growth_of() {
    local limit=$1 dir files kind share all label anon costs mark
    shift
    local asked=("$@")
    for kind in images tiny; do
        costs=()
        for share in 10 20 40 100; do
            choose "$kind"
            all=${#files[@]}
            choose_first $(((all * share + 99) / 100))
            label="$share % of $kind, \`walstat ${asked[*]} -j1\`"
            if ! side_by_side "$few" run_asked_1 ||
                ! read -r anon _ < <(peak_memory "$walstat" "${asked[@]}" -j1 "$dir"); then
                row "$label" '–' '–' '–' '–' 'FAIL: did not run'
                continue
            fi
            costs+=("$(quotient "${median_cpu[0]}" "$(stat -Lc %s "${files[@]}" | awk '{ n += $1 } END { print n / 1000 }')" 3)")
            mark=pass
            [ "$anon" -lt $((limit * 1000000 / 1024)) ] || mark=FAIL
            row "$label" '–' "$(seconds 0)" "${costs[-1]} CPU ns a byte, $((anon * 1024 / 1000000)) MB" "≤ $limit MB" "$mark"
        done
    done
}

case_growth() {
    case_growth_of 150
    case_growth_of 150 whatif --checkpoint-every 2x
}

# The chosen segments, compressed by the tool "$1" with its default level to files named *."$2".
compressed() {
    local folder=$wal/images.$2
    if [ ! -d "$folder" ]; then
        echo "compressing ${#files[@]} segments in $folder" >&2
        rm -rf "$folder.partial"
        mkdir "$folder.partial"
        printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -I {} \
            sh -c '"$1" -c <"$2" >"$3/${2##*/}.$4"' sh "$1" {} "$folder.partial" "$2"
        mv "$folder.partial" "$folder"
    fi
    dir=$folder
    packed=("$dir"/*)
}

# One process a CPU, each with its share of the files, as a shell user would do it.
run_codec() {
    local share=$((${#packed[@]} / threads)) index pids=() pid
    for ((index = 1; index < threads; index++)); do
        taskset -c "$cpus" "$codec" "$unpack" "${packed[@]:(index - 1) * share:share}" &
        pids+=("$!")
    done
    taskset -c "$cpus" "$codec" "$unpack" "${packed[@]:(threads - 1) * share}"
    for pid in "${pids[@]}"; do wait "$pid"; done
}

# Both sides are bound to the same CPUs: some releases of these tools use more threads than asked.
run_stats_bound() { taskset -c "$cpus" "$walstat" --stats=record -j"$threads" "$dir"; }

case_compressed() {
    local dir files packed threads codec suffix unpack cpus label
    for codec in zstd lz4 gzip; do
        command -v "$codec" >/dev/null || fail "$codec is not installed"
        case $codec in
            zstd) suffix=zst unpack=-dc ;;
            lz4) suffix=lz4 unpack=-dcm ;;
            gzip) suffix=gz unpack=-dc ;;
        esac
        choose images
        files=("${files[@]:0:32}")
        compressed "$codec" "$suffix"
        for threads in 1 2; do
            label="32 segments as .$suffix, \`-j$threads\`"
            cpus=$(first_cpus "$threads")
            if [ "$threads" -gt "$(nproc)" ]; then
                row "$label" "$codec $unpack" '–' '–' '≥ 0.9' 'NOT MEASURED: one CPU'
            elif same_totals "$label" json_stats "${files[@]}"; then
                compare "$label" "$codec $unpack" run_codec run_stats_bound 0.9 "$few"
            fi
        done
    done
}

evict_files() { evict "${files[@]}"; }

case_cold() {
    local dir files threads label before_each=evict_files
    choose images
    sync "${files[@]}"
    for threads in 1 2; do
        label="images, cold cache, \`-j$threads\`"
        if same_totals "$label" json_stats "${files[@]}"; then
            compare "$label" 'cat FILES' run_cat run_stats 0.95 "$few"
        fi
    done
}

case_pipe() {
    local dir files threads=1 label='images through a pipe, `-j1`'
    choose images
    if same_totals "$label" json_pipe "${files[@]}"; then
        compare "$label" 'cat FILES \| cat' run_cat_pipe run_stats_pipe 0.9
    fi
}

run_first_1() { "$walstat" --stats=record -j1 "$work/first-64-${dir##*/}"; }
run_first_2() { "$walstat" --stats=record -j1 "$work/first-128-${dir##*/}"; }
run_first_4() { "$walstat" --stats=record -j1 "$work/first-256-${dir##*/}"; }
run_first_8() { "$walstat" --stats=record -j1 "$work/first-512-${dir##*/}"; }

# Cost per byte is flat when no size costs more than a tenth more than the smallest one; that more
# WAL costs less a byte is the start of the process.
case_scaling() {
    local dir files kind=images sizes=(1 2) size index=0 costs=() spread mark=pass
    if "$big"; then kind=bulk sizes=(1 2 4 8); fi
    for size in "${sizes[@]}"; do
        choose "$kind"
        [ "${#files[@]}" -ge $((size * 64)) ] || fail "$dir holds less than $size GB: remove it and run again"
        choose_first $((size * 64))
    done
    choose "$kind"
    # How large the pieces are in which a file lies in the page cache depends on how it came there,
    # and is worth a tenth of the time: let all files come the same way.
    evict "${files[@]}"
    cat "${files[@]}" >/dev/null
    if ! side_by_side "$few" "${sizes[@]/#/run_first_}"; then
        row "scaling of $kind" '–' '–' '–' flat 'FAIL: did not run'
        return
    fi
    for size in "${sizes[@]}"; do
        costs+=("$(quotient $((median_wall[index] * 1000)) $((size * 1073741824)) 4)")
        row "$kind, $size GiB, \`-j1\`" '–' "$(seconds "$index")" "${costs[index]} ns a byte" '–' '–'
        index=$((index + 1))
    done
    spread=$(printf '%s\n' "${costs[@]}" | awk 'NR == 1 { a = $1 } { if ($1 / a > most) most = $1 / a } END { printf "%.3f", most }')
    at_least 1.1 "$spread" || mark=FAIL
    "$big" || mark="$mark, 4 and 8 GiB NOT MEASURED: --big"
    row "scaling: dearest byte / byte of the smallest" '–' '–' "$spread" '≤ 1.1' "$mark"
}
