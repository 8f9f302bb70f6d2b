#!/usr/bin/env bash
# Archives of one cluster by every archiver at once, for tests/live/archives.rs.
#
#   archivers.sh make HOME              repositories in HOME, for the cluster in HOME/data
#   archivers.sh push HOME PATH NAME    to be the archive_command
#   archivers.sh finish HOME            lets Barman file what came in
#
# Makes HOME/cp, HOME/pgbackrest-TYPE, HOME/barman/TYPE. Needs pgbackrest, barman, xz, zstd, lz4.
set -euo pipefail
action=$1 home=$2
readonly pgbackrest=(none gz lz4 zst bz2 cipher) barman=(none gzip bzip2 xz zstd lz4)

repository() {
  local type=$1
  shift
  local options=(--no-config --stanza=demo "--pg1-path=$home/data" "--repo1-path=$home/pgbackrest-$type"
    "--lock-path=$home/lock" --log-level-file=off --log-level-console=warn)
  if [ "$type" = cipher ]; then
    PGBACKREST_REPO1_CIPHER_PASS=secret pgbackrest "${options[@]}" --repo1-cipher-type=aes-256-cbc "$@"
  else
    pgbackrest "${options[@]}" "$@"
  fi
}

barman_conf() {
  printf '[barman]\nbarman_user = %s\nbarman_home = %s\nlog_file = %s\n' "$(id -un)" "$home/barman" "$home/barman.log"
  local type
  for type in "${barman[@]}"; do
    printf '[%s]\ndescription = %s\nconninfo = host=none\nstreaming_conninfo = host=none\n' "$type" "$type"
    printf 'backup_method = postgres\narchiver = on\n'
    case $type in
      none) ;;
      gzip | bzip2) echo "compression = $type" ;;
      # What this release of Barman does not offer by itself goes through a filter.
      *) printf 'compression = custom\ncustom_compression_filter = %s -c\ncustom_decompression_filter = %s -dc\n' "$type" "$type" ;;
    esac
  done
}

case $action in
  make)
    mkdir "$home/cp"
    for type in "${pgbackrest[@]}"; do repository "$type" --no-online stanza-create; done
    for type in "${barman[@]}"; do mkdir -p "$home/barman/$type/incoming"; done
    barman_conf >"$home/barman.conf"
    ;;
  push)
    for type in "${pgbackrest[@]}"; do repository "$type" "--compress-type=${type/cipher/zst}" archive-push "$3"; done
    for type in "${barman[@]}"; do cp "$3" "$home/barman/$type/incoming/$4"; done
    cp "$3" "$home/cp/$4"
    ;;
  finish)
    for type in "${barman[@]}"; do barman -q -c "$home/barman.conf" archive-wal "$type"; done
    ;;
esac
