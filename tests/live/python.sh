#!/usr/bin/env bash
# Makes the virtual environment with the engines that read what walstat writes, for the live tests: DuckDB,
# pyarrow, and Spark with its Python (300 MB).
#
#   tests/live/python.sh [DIRECTORY]      default: target/live-python, or $WALSTAT_LIVE_PYTHON
#
# One that has these packages is left alone. Needs python3 with venv and PyPI; Spark needs Java 17 to run.
set -euo pipefail

# Fixed, so that a run today and a run next year agree.
readonly packages="duckdb==2.0.0 pyarrow==26.0.1 pyspark==4.3.0"

root=$(cd "$(dirname "$0")/../.." && pwd)
environment=${1:-${WALSTAT_LIVE_PYTHON:-$root/target/live-python}}

if [ "$(cat "$environment/PACKAGES" 2>/dev/null)" = "$packages" ]; then
  exit 0
fi
rm -rf "$environment"
python3 -m venv "$environment"
# shellcheck disable=SC2086 # several packages
"$environment/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
  --no-compile $packages
echo "$packages" >"$environment/PACKAGES"
