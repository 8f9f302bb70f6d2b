#!/usr/bin/env bash
# walstat for aarch64, built and run on another machine: with Debian's cross compiler, under qemu.
#
#     packaging/aarch64.sh test                   the tests of the format and of the reader
#     packaging/aarch64.sh same BINARY [--brief]  is built, and says of the fixtures what BINARY says of them?
#     packaging/aarch64.sh with COMMAND...        COMMAND, with the variables that cargo needs for it
#
# Installs nothing: says what is missing. Everything is built with the profile of the tests, but what those run
# little of.
# Status: 0 holds, 2 usage or something missing, else what failed.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
# Where Debian has the C library for it; in the packages' names there are no underscores.
libraries=/usr/aarch64-linux-gnu
emulator="qemu-aarch64 -L $libraries"

usage() {
  sed -n 's/^#     //p' "$0" >&2
  exit 2
}

fail() {
  echo "aarch64.sh: $*" >&2
  exit 2
}

# For the compiler of crates with C in them, cc finds aarch64-linux-gnu-gcc by itself.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
if [ "$(uname -m)" != aarch64 ]; then
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$emulator
fi

needs() {
  command -v aarch64-linux-gnu-gcc > /dev/null || fail 'missing: apt install gcc-aarch64-linux-gnu'
  [ -e "$libraries/lib/libc.so.6" ] || fail 'missing: apt install libc6-dev-arm64-cross'
  command -v qemu-aarch64 > /dev/null || fail 'missing: apt install qemu-user'
  [ -d "$(rustc --print target-libdir --target "$target")" ] || fail "missing: rustup target add $target"
}

# What these tests run so little of that to optimise it takes longer.
unoptimised=(walstat-input zstd-sys liblzma-sys libbz2-rs-sys zlib-rs proptest)

# Without the documentation's examples: they were compiled and run once, and each is a program to link.
run_tests() {
  local package options=()
  for package in "${unoptimised[@]}"; do
    options+=(--config "profile.dev.package.$package.opt-level=0")
  done
  cargo test --locked --target "$target" "${options[@]}" -p walstat-format -p walstat-input -p walstat-read --lib
}

# same BINARY [--brief]
same() {
  local binary=$1
  shift
  cargo build --locked --target "$target" --bin walstat
  packaging/same_answers.sh "$@" "$binary" "$emulator ${CARGO_TARGET_DIR:-target}/$target/debug/walstat"
}

case ${1:-} in
  test)
    [ $# -eq 1 ] || usage
    needs
    run_tests
    ;;
  same)
    [ $# -ge 2 ] || usage
    needs
    same "${@:2}"
    ;;
  with)
    [ $# -ge 2 ] || usage
    needs
    "${@:2}"
    ;;
  *) usage ;;
esac
