#!/bin/sh
# Fills fuzz/inputs/ with seeds from tests/fixtures: first pages of real WAL of every release, the
# small compressed and archived files, history files, and every input that once was a finding.
# Needs tar and zstd. Run it from anywhere; what the fuzzer added there stays.
set -eu
cd "$(dirname "$0")"
fixtures=../tests/fixtures
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p inputs/record inputs/segment inputs/archive inputs/program

for archive in "$fixtures"/*/wal.tar.zst; do
    zstd -dcq --long=27 "$archive" | tar -C "$scratch" -xf -
done
mkdir -p "$scratch/pg15-mixed"
zstd -dcq "$fixtures/pg15-mixed/000000010000000000000007.zst" \
    > "$scratch/pg15-mixed/000000010000000000000007"

# The place of a release in the list of all, as the control bytes of shape.rs want it.
place() {
    case $1 in
    *9.5*) echo 000 ;; *9.6*) echo 001 ;; *pg10*) echo 002 ;; *pg11*) echo 003 ;;
    *pg12*) echo 004 ;; *pg13*) echo 005 ;; *pg14*) echo 006 ;; *pg15* | livedir) echo 007 ;;
    *pg16*) echo 010 ;; *pg17* | consistency | timeline | truncated) echo 011 ;;
    *pg18*) echo 012 ;; *pg19*) echo 013 ;; overwrite) echo 007 ;; *) echo 011 ;;
    esac
}

# name, flags of shape.rs in octal, pages: control bytes, then pages as they are.
shaped() {
    printf "\\$(place "$1")\\003\\034\\$2\\000\\000\\377\\377\\000\\000\\000\\001\\144\\000\\000\\000"
    head -c $(($3 * 8192)) "$4"
}

for sample in "$scratch"/*/; do
    name=$(basename "$sample")
    number=0
    for file in "$sample"0*; do
        case $file in *.history) cp "$file" "inputs/record/$name-history"; continue ;; esac
        number=$((number + 1))
        [ $number -le 3 ] || continue
        # 041: long headers made to fit, the place as the first page says.
        shaped "$name" 041 5 "$file" > "inputs/segment/$name-$number"
        shaped "$name" 041 5 "$file" > "inputs/program/$name-$number"
        # 043: the bytes taken for the content of records.
        shaped "$name" 043 2 "$file" > "inputs/segment/$name-$number-records"
        shaped "$name" 043 2 "$file" > "inputs/program/$name-$number-records"
        # Behind the long header of a segment: often the first whole record.
        dd if="$file" bs=1 skip=40 count=1400 2>/dev/null > "inputs/record/$name-$number"
        [ $number = 1 ] || continue
        head -c 16384 "$file" | gzip -9c > "inputs/archive/$name.gz"
        mkdir -p "$scratch/cut/$name"
        head -c 16384 "$file" > "$scratch/cut/$name/$(basename "$file")"
        tar -C "$scratch/cut/$name" -cf "inputs/archive/$name.tar" "$(basename "$file")"
    done
done
for file in "$fixtures"/codecs/* "$fixtures"/archives/*; do
    [ -f "$file" ] && [ "$(wc -c < "$file")" -le 65536 ] || continue
    case $file in *.md | *.sh) continue ;; esac
    cp "$file" inputs/archive/
done
for file in "$fixtures"/fuzz/*; do
    case $file in *.md) continue ;; esac
    target=$(basename "$file")
    target=${target%%-*}
    [ -d "inputs/$target" ] && cp "$file" "inputs/$target/"
done
printf '1\t0/892E18\tno recovery target specified\n2\t1/0\treason\n' > inputs/record/history
printf '000000010000000000000001-da39a3ee5e6b4b0d3255bfef95601890afd80709.zst\n16/B374D848\n' \
    > inputs/record/names
for target in record segment archive program; do
    echo "$target: $(find inputs/$target -type f | wc -l) inputs"
done
