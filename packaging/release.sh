#!/usr/bin/env bash
# Makes what is released, in target/packages: the binary, a Debian package with man page and completions,
# and a wheel with the binary. `packaging/release.sh --check` installs each in a place of its own and runs
# it. Needs a Rust toolchain and dpkg-deb; for the wheel python3 with venv and the network.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/packages
fixture=tests/fixtures/pg15-mixed
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
  (cd "$out" && sha256sum -- walstat *.deb *.whl > SHA256SUMS)
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
  "$venv/bin/pip" install -q 'maturin>=1.7,<2'
  "$venv/bin/maturin" build --release --locked --out "$out"
  rm -rf "$venv"
}

# Each is installed where nothing else is, and has to count the same as the build.
check() {
  local want root venv
  want=$("$out/walstat" --stats -f csv "$fixture" | sha256sum)
  say "Debian package, installed"
  root=$(mktemp -d)
  dpkg-deb -x "$out"/walstat_*.deb "$root"
  [ "$want" = "$("$root/usr/bin/walstat" --stats -f csv "$fixture" | sha256sum)" ]
  gzip -t "$root/usr/share/man/man1/walstat.1.gz"
  grep -q walstat "$root/usr/share/bash-completion/completions/walstat"
  rm -rf "$root"
  say "wheel, installed"
  venv=$(mktemp -d)
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-index "$out"/walstat-*.whl
  [ "$want" = "$("$venv/bin/walstat" --stats -f csv "$fixture" | sha256sum)" ]
  rm -rf "$venv"
  say "both count as the build does"
}

case "${1:-}" in
  '') build ;;
  --check) check ;;
  *) echo "usage: $0 [--check]" >&2; exit 2 ;;
esac
