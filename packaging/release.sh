#!/usr/bin/env bash
# Makes what is released, in target/packages, for x86-64 and aarch64: a tar with the binary, a Debian package
# with man page and completions, a wheel with the binary; and a static binary for this machine's kind. What
# cannot be made here is SKIPPED, with what it wants: a cross compiler, a Rust target, the network for a wheel.
# `packaging/release.sh --check` installs each where nothing of the build is present, and runs it there: the
# Debian package with what it depends on in a root of its own (for that it has to be root), the wheel in a
# fresh venv, what is for the other kind of machine under an emulator.
# Needs a Rust toolchain, dpkg-deb and binutils; for the wheel python3 with venv and the network.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/packages
fixture=tests/fixtures/pg15-mixed
native=$(uname -m)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

say() { printf '\n== %s\n' "$*"; }

# With the variables that a build for MACHINE needs: for_machine MACHINE COMMAND...
for_machine() {
  if [ "$1" = aarch64 ]; then packaging/aarch64.sh with "${@:2}"; else "${@:2}"; fi
}

# The binary for MACHINE, where cargo leaves it.
binary() { echo "target/$1-unknown-linux-gnu/dist/walstat"; }

debian_name() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; esac; }

# The machines that can be built for here: this one, and aarch64 where its cross compiler is.
machines() {
  echo "$native"
  [ "$native" != aarch64 ] || return 0
  if packaging/aarch64.sh with true; then echo aarch64; else say "SKIPPED: nothing for aarch64" >&2; fi
}

build() {
  local machine
  rm -rf "$out" && mkdir -p "$out"
  for machine in $(machines); do
    say "binary for $machine"
    for_machine "$machine" cargo build --profile dist --locked --features parquet,cloud --target "$machine-unknown-linux-gnu"
    archive "$machine"
    debian "$machine"
    wheel "$machine"
  done
  static_binary
  (cd "$out" && sha256sum -- * > ../SHA256SUMS && mv ../SHA256SUMS .)
  say "$(ls -l "$out")"
}

# papers DIRECTORY: man page and completions below it, which the binary for this machine writes.
papers() {
  local walstat
  walstat=$(binary "$native")
  mkdir -p "$1/man/man1" "$1/bash-completion/completions" "$1/zsh/vendor-completions" "$1/fish/vendor_completions.d"
  "$walstat" man | gzip -9n > "$1/man/man1/walstat.1.gz"
  "$walstat" completions bash > "$1/bash-completion/completions/walstat"
  "$walstat" completions zsh > "$1/zsh/vendor-completions/_walstat"
  "$walstat" completions fish > "$1/fish/vendor_completions.d/walstat.fish"
}

archive() {
  say "tar for $1"
  local root name=walstat-$version-$1-linux
  root=$(mktemp -d)
  install -D -m 755 "$(binary "$1")" "$root/$name/walstat"
  papers "$root/$name/share"
  cp README.md CHANGELOG.md LICENSE* "$root/$name/"
  chmod -R u+rwX,go+rX,go-w "$root/$name"
  tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -9n > "$out/$name.tar.gz"
  rm -rf "$root"
}

# The newest symbols of the C library that the binary asks for.
glibc() {
  readelf -W --version-info "$(binary "$1")" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1
}

debian() {
  say "Debian package for $1"
  local root architecture
  root=$(mktemp -d)
  architecture=$(debian_name "$1")
  install -D -m 755 "$(binary "$1")" "$root/usr/bin/walstat"
  papers "$root/usr/share"
  mkdir -p "$root/usr/share/doc/walstat" "$root/DEBIAN"
  gzip -9nc CHANGELOG.md > "$root/usr/share/doc/walstat/changelog.gz"
  cp README.md "$root/usr/share/doc/walstat/"
  cat LICENSE* > "$root/usr/share/doc/walstat/copyright"
  cat > "$root/DEBIAN/control" <<CONTROL
Package: walstat
Version: $version
Architecture: $architecture
Maintainer: the walstat developers <walstat@example.org>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6 (>= $(glibc "$1")), libgcc-s1
Section: database
Priority: optional
Description: what is in PostgreSQL WAL, and why there is so much
 Reads WAL of PostgreSQL 9.5 to 19 without a server and answers with numbers
 that are exact to the byte: which tables, records, transactions and
 checkpoints wrote it, and what other settings would have written.
CONTROL
  chmod -R u+rwX,go+rX,go-w "$root"
  dpkg-deb --root-owner-group --build "$root" "$out/walstat_${version}_$architecture.deb"
  rm -rf "$root"
}

wheel() {
  say "wheel for $1"
  local venv
  venv=$(mktemp -d)
  python3 -m venv "$venv"
  if "$venv/bin/pip" install -q 'maturin>=1.7,<2'; then
    for_machine "$1" "$venv/bin/maturin" build --profile dist --locked --target "$1-unknown-linux-gnu" --out "$out"
  else
    say "SKIPPED: no wheel, for maturin cannot be installed here"
  fi
  rm -rf "$venv"
}

# For machines without the C library of the others.
static_binary() {
  say "static binary"
  local target=$native-unknown-linux-musl
  if ! rustc --print target-libdir --target "$target" | xargs -r test -d || ! command -v musl-gcc > /dev/null; then
    say "SKIPPED: no static binary, for that rustup target add $target and apt install musl-tools"
    return
  fi
  cargo build --profile dist --locked --features parquet,cloud --target "$target"
  install -m 755 "target/$target/dist/walstat" "$out/walstat-static"
}

# Each is installed where nothing else is, and has to count the same as the build.
check() {
  local want
  want=$(count "$(binary "$native")" "$fixture")
  check_archive
  check_debian
  check_wheel
  if [ -e "$out/walstat-static" ]; then
    say "static binary"
    { ldd "$out/walstat-static" 2>&1 || true; } | grep -qE 'not a dynamic|statically'
    same "$(count "$out/walstat-static" "$fixture")"
  fi
  if [ "$native" != aarch64 ] && ls "$out"/walstat_*_arm64.deb > /dev/null 2>&1; then check_aarch64; fi
  say "what is there counts as the build does"
}

count() { "$1" --stats -f csv "$2" | sha256sum; }

same() { [ "$want" = "$1" ] || { echo "$0: it counts differently" >&2; exit 1; }; }

check_archive() {
  say "tar, unpacked"
  local root
  root=$(mktemp -d)
  tar -C "$root" -xzf "$out/walstat-$version-$native-linux.tar.gz"
  same "$(count "$root/walstat-$version-$native-linux/walstat" "$fixture")"
  rm -rf "$root"
}

# In a root that has the packages it depends on, and nothing else.
check_debian() {
  say "Debian package, installed"
  local root
  root=$(mktemp -d)
  mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root"/usr/{lib,lib64} "$root/tmp"
  ln -s usr/lib "$root/lib" && ln -s usr/lib64 "$root/lib64"
  touch "$root/var/lib/dpkg/status"
  dpkg --root="$root" --log=/dev/null --force-depends --force-not-root --force-script-chrootless \
    -i "$out/walstat_${version}_$(debian_name "$native").deb"
  gzip -t "$root/usr/share/man/man1/walstat.1.gz"
  grep -q walstat "$root/usr/share/bash-completion/completions/walstat"
  if [ "$(id -u)" = 0 ]; then
    dpkg -L libc6 libgcc-s1 | while read -r file; do
      if [ -f "$file" ]; then cp -L --parents "$file" "$root"; fi
    done
    cp -r "$fixture" "$root/wal"
    same "$(chroot "$root" /usr/bin/walstat --stats -f csv /wal | sha256sum)"
  else
    say "SKIPPED: not root, so the package runs outside of its root"
    same "$(count "$root/usr/bin/walstat" "$fixture")"
  fi
  rm -rf "$root"
}

check_wheel() {
  if ! ls "$out"/walstat-*"_$native.whl" > /dev/null 2>&1; then
    say "SKIPPED: there is no wheel"
    return
  fi
  say "wheel, installed"
  local venv
  venv=$(mktemp -d)
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-index "$out"/walstat-*"_$native.whl"
  same "$(count "$venv/bin/walstat" "$fixture")"
  rm -rf "$venv"
}

# The package for aarch64 says of every fixture what this machine's binary says.
check_aarch64() {
  say "Debian package for aarch64, under qemu"
  local root
  root=$(mktemp -d)
  dpkg-deb -x "$out/walstat_${version}_arm64.deb" "$root"
  packaging/same_answers.sh "$(binary "$native")" "qemu-aarch64 -L /usr/aarch64-linux-gnu $root/usr/bin/walstat"
  rm -rf "$root"
}

case "${1:-}" in
  '') build ;;
  --check) check ;;
  *) echo "usage: $0 [--check]" >&2; exit 2 ;;
esac
