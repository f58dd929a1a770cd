#!/usr/bin/env bash
# Runs every fuzz target for SECONDS_EACH seconds (default 60), each seeded with the sample files of its format: the bundled one, small
# ones written by the other libraries, and those of CORRIDOR_TEST_DATA if set. TARGETS names some of them only.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-60}
export RUSTC_BOOTSTRAP=1 # coverage instrumentation is behind an unstable flag; the toolchain itself is the stable one
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target/fuzz}"
tools/setup.sh test
if ! command -v cargo-fuzz > /dev/null; then
    echo "fuzz: installing cargo-fuzz with cargo"
    cargo install --quiet --locked cargo-fuzz
fi
.venv/bin/python tools/fuzz-seeds.py lab/fuzz/corpus
cd lab/fuzz
for target in ${TARGETS:-$(cargo fuzz list)}; do
    echo "== $target for $seconds s"
    cargo fuzz run -s none "$target" -- -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -max_len=65536 \
        -print_final_stats=1 2>&1 | tail -n 12
done
