#!/usr/bin/env bash
# restore_command of the restore tests: fetches a file by its full name only, as the tools that wrote
# such a tree do, and decodes it.
#
#   fetch.sh LAYOUT ARCHIVE NAME TARGET
set -euo pipefail
layout=$1 archive=$2 name=$3 target=$4

is_segment() { [[ $name =~ ^[0-9A-F]{24}$ ]]; }

# pgBackRest keeps one file of a segment, with the SHA-1 of its content in the name, which `archive-get` does not compare.
pgbackrest() {
  local found
  if ! is_segment; then cp "$archive/archive/demo/15-1/$name" "$target"; return; fi
  found=("$archive/archive/demo/15-1/${name:0:16}/$name"-*)
  [ ${#found[@]} = 1 ] && [ -f "${found[0]}" ] || return 1
  case ${found[0]} in
    *.zst) zstd -q -dc <"${found[0]}" >"$target" ;;
    *) cp "${found[0]}" "$target" ;;
  esac
}

# Barman compresses everything under its plain name and tells what it is by the content.
barman() {
  local file=$archive/wals/${name:0:16}/$name
  is_segment || file=$archive/wals/$name
  [ -f "$file" ] || return 1
  case $(head -c 6 "$file" | od -An -tx1 | tr -d ' ') in
    1f8b*) gzip -dc <"$file" >"$target" ;;
    fd377a585a00) xz -dc <"$file" >"$target" ;;
    *) cp "$file" "$target" ;;
  esac
}

case $layout in
  raw) [ -f "$archive/$name" ] && cp "$archive/$name" "$target" ;;
  gzip) [ -f "$archive/$name.gz" ] && gzip -dc <"$archive/$name.gz" >"$target" ;;
  long-gzip) [ -f "$archive/$name.gzip" ] && gzip -dc <"$archive/$name.gzip" >"$target" ;;
  zstd) [ -f "$archive/$name.zst" ] && zstd -q -dc <"$archive/$name.zst" >"$target" ;;
  pgbackrest | pgbackrest-zst) pgbackrest ;;
  barman) barman ;;
  *) exit 2 ;;
esac
