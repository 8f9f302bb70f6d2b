#!/usr/bin/env bash
# Do two builds of walstat say the same of every fixture? Output, complaints and exit code are compared byte
# for byte, but for the processor time that `whatif` gives for compression. A build is a command, so that it
# can be one for another processor, under an emulator:
#
#     packaging/same_answers.sh target/release/walstat 'qemu-aarch64 -L /usr/aarch64-linux-gnu OTHER/walstat'
#
# --brief asks less: for the report of each sample alone, and for everything of one of them.
# Status: 0 the same, 1 not, 2 usage or something missing.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
fixtures=tests/fixtures
# The sample that is asked for everything: nearly every kind of record is in it.
rich=pg17-mixed

usage() {
  echo "usage: packaging/same_answers.sh [--brief] COMMAND_A COMMAND_B" >&2
  exit 2
}

brief=false
if [ "${1:-}" = --brief ]; then
  brief=true
  shift
fi
[ $# -eq 2 ] || usage
# Commands in words: neither programs nor their options have blanks in them.
read -ra one <<< "$1"
read -ra other <<< "$2"
for tool in "${one[0]}" "${other[0]}" zstd tar cmp; do
  command -v "$tool" > /dev/null || { echo "same_answers.sh: $tool is missing" >&2; exit 2; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# A sample is a directory of segments; several may share an archive.
unpack() {
  local archive
  mkdir "$work/wal"
  for archive in "$fixtures"/*/*.tar.zst; do
    tar -C "$work/wal" -I zstd -xf "$archive"
  done
}

# samples: what has WAL in it, a path a line; a tree of archives is one sample for each of them.
samples() {
  if ! $brief; then
    echo "$fixtures/backup/archive"
    ls -d "$work"/wal/trees/*/
    ls -d "$fixtures"/fuzz/* "$fixtures"/codecs/*
  fi
  ls -d "$fixtures/pg15-mixed" "$work"/wal/*/ | grep -v -e /trees/ -e /catalogs/
}

# questions PATH: what is asked of it, one command line a line.
questions() {
  echo '-f json'
  case $1 in
    */fuzz/* | */codecs/*) return ;;
    */"$rich"/) ;;
    *) if $brief; then return; fi ;;
  esac
  printf '%s\n' '--stats=all -f json' 'check -f json' 'whatif -f json'
}

# answer NAME COMMAND... : what it says, without how long it took.
answer() {
  local name=$1 status=0
  shift
  "$@" > "$work/$name.out" 2> "$work/$name.err" || status=$?
  {
    sed -E -e 's/("cpu_seconds": )[0-9.e-]+/\1some/' \
      -e 's/(takes about )[0-9.]+( m?s of CPU)/\1some\2/' "$work/$name.out"
    cat "$work/$name.err"
    echo "exit code $status"
  } > "$work/$name"
}

unpack
asked=0 differing=0
while read -r sample; do
  while read -ra question; do
    answer one "${one[@]}" "${question[@]}" "$sample"
    answer other "${other[@]}" "${question[@]}" "$sample"
    asked=$((asked + 1))
    if ! cmp -s "$work/one" "$work/other"; then
      differing=$((differing + 1))
      echo "DIFFERENT: walstat ${question[*]} ${sample#"$work/wal/"}"
      { diff "$work/one" "$work/other" || true; } | head -10
    fi
  done < <(questions "$sample")
done < <(samples)
echo "$asked questions, $differing answered differently"
[ "$asked" -gt 0 ] && [ "$differing" -eq 0 ]
