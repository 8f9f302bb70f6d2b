#!/usr/bin/env bash
# Makes what is released, in target/packages: the binary, a Debian package with man page and completions,
# a wheel with the binary, and a static binary where the Rust target and the C compiler for it are installed.
# `packaging/release.sh --check` installs each where nothing of the build is present, and runs it there: the
# Debian package with what it depends on in a root of its own (for that it has to be root), the wheel in a
# fresh venv. Needs a Rust toolchain, dpkg-deb and binutils; for the wheel python3 with venv and the network.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/packages
fixture=tests/fixtures/pg15-mixed
static_target=$(uname -m)-unknown-linux-musl
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
architecture=$(dpkg --print-architecture)

say() { printf '\n== %s\n' "$*"; }

build() {
  say "binary"
  cargo build --release --locked
  rm -rf "$out" && mkdir -p "$out"
  install -m 755 target/release/walstat "$out/walstat"
  strip "$out/walstat"
  debian
  wheel
  static_binary
  (cd "$out" && sha256sum -- * > ../SHA256SUMS && mv ../SHA256SUMS .)
  say "$(ls -l "$out")"
}

# The newest symbols of the C library that the binary asks for.
glibc() {
  objdump -T "$out/walstat" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1
}

debian() {
  say "Debian package"
  local root
  root=$(mktemp -d)
  install -D -m 755 "$out/walstat" "$root/usr/bin/walstat"
  mkdir -p "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" \
    "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d" \
    "$root/usr/share/doc/walstat" "$root/DEBIAN"
  "$out/walstat" man | gzip -9n > "$root/usr/share/man/man1/walstat.1.gz"
  "$out/walstat" completions bash > "$root/usr/share/bash-completion/completions/walstat"
  "$out/walstat" completions zsh > "$root/usr/share/zsh/vendor-completions/_walstat"
  "$out/walstat" completions fish > "$root/usr/share/fish/vendor_completions.d/walstat.fish"
  gzip -9nc CHANGELOG.md > "$root/usr/share/doc/walstat/changelog.gz"
  cp README.md "$root/usr/share/doc/walstat/"
  cat LICENSE* > "$root/usr/share/doc/walstat/copyright"
  cat > "$root/DEBIAN/control" <<CONTROL
Package: walstat
Version: $version
Architecture: $architecture
Maintainer: the walstat developers <walstat@example.org>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6 (>= $(glibc)), libgcc-s1
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
  say "wheel"
  local venv
  venv=$(mktemp -d)
  python3 -m venv "$venv"
  if "$venv/bin/pip" install -q 'maturin>=1.7,<2'; then
    "$venv/bin/maturin" build --release --locked --out "$out"
  else
    say "SKIPPED: no wheel, for maturin cannot be installed here"
  fi
  rm -rf "$venv"
}

# For machines without the C library of the others.
static_binary() {
  say "static binary"
  if ! rustc --print target-libdir --target "$static_target" | xargs -r test -d || ! command -v musl-gcc > /dev/null; then
    say "SKIPPED: no static binary, for that rustup target add $static_target and apt install musl-tools"
    return
  fi
  cargo build --release --locked --target "$static_target"
  install -m 755 "target/$static_target/release/walstat" "$out/walstat-static"
  strip "$out/walstat-static"
}

# Each is installed where nothing else is, and has to count the same as the build.
check() {
  local want
  want=$(count "$out/walstat" "$fixture")
  check_debian
  check_wheel
  if [ -e "$out/walstat-static" ]; then
    say "static binary"
    { ldd "$out/walstat-static" 2>&1 || true; } | grep -qE 'not a dynamic|statically'
    same "$(count "$out/walstat-static" "$fixture")"
  fi
  say "what is there counts as the build does"
}

count() { "$1" --stats -f csv "$2" | sha256sum; }

same() { [ "$want" = "$1" ] || { echo "$0: it counts differently" >&2; exit 1; }; }

# In a root that has the packages it depends on, and nothing else.
check_debian() {
  say "Debian package, installed"
  local root
  root=$(mktemp -d)
  mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root"/usr/{lib,lib64} "$root/tmp"
  ln -s usr/lib "$root/lib" && ln -s usr/lib64 "$root/lib64"
  touch "$root/var/lib/dpkg/status"
  dpkg --root="$root" --log=/dev/null --force-depends --force-not-root --force-script-chrootless \
    -i "$out"/walstat_*.deb
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
  if ! ls "$out"/walstat-*.whl > /dev/null 2>&1; then
    say "SKIPPED: there is no wheel"
    return
  fi
  say "wheel, installed"
  local venv
  venv=$(mktemp -d)
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-index "$out"/walstat-*.whl
  same "$(count "$venv/bin/walstat" "$fixture")"
  rm -rf "$venv"
}

case "${1:-}" in
  '') build ;;
  --check) check ;;
  *) echo "usage: $0 [--check]" >&2; exit 2 ;;
esac
