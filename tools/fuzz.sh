#!/usr/bin/env bash
# Runs every fuzz target for SECONDS_EACH seconds (default 60), one after the other, each seeded by tools/fuzz-seeds.py
# and with its dictionary (lab/fuzz/dictionaries). TARGETS selects some of them. Prints one line of figures for each;
# logs and failing inputs are saved in lab/fuzz/artifacts. Exits with 1 if any target failed.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-60}
export RUSTC_BOOTSTRAP=1 # coverage instrumentation is behind an unstable flag; the toolchain itself is the stable one
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target/fuzz}"
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # inputs are files: in memory, if possible
memory_mib=2048                             # limit of a process; the limit of its address space is twice that
tools/setup.sh test
if ! command -v cargo-fuzz > /dev/null; then
    echo "fuzz: installing cargo-fuzz with cargo"
    cargo install --quiet --locked cargo-fuzz
fi
.venv/bin/python tools/fuzz-seeds.py lab/fuzz/corpus
cp Cargo.lock lab/fuzz/Cargo.lock # same versions as the program
cd lab/fuzz
cargo fuzz build -s none
mkdir -p artifacts

fuzz() { # fuzz TARGET: its output
    local options=(-max_total_time="$seconds" -rss_limit_mb=$memory_mib -timeout=20 -max_len=65536 -print_final_stats=1)
    [ ! -e "dictionaries/$1.dict" ] || options+=(-dict="dictionaries/$1.dict")
    mkdir -p "corpus/$1"
    (ulimit -v $((2 * memory_mib * 1024)) && cargo fuzz run -s none "$1" -- "${options[@]}" 2>&1)
}

figure() { # figure PATTERN LOG: the last number after PATTERN
    grep -oP "$1\s*\K[0-9]+" "$2" | tail -n 1 || echo "?"
}

failed=()
printf '%-12s %12s %9s %9s %7s %9s\n' target executions coverage features corpus peak_MiB
for target in ${TARGETS:-$(cargo fuzz list)}; do
    log=artifacts/$target.log
    fuzz "$target" > "$log" || failed+=("$target")
    printf '%-12s %12s %9s %9s %7s %9s\n' "$target" "$(figure number_of_executed_units: "$log")" \
        "$(figure 'cov:' "$log")" "$(figure 'ft:' "$log")" "$(figure 'corp:' "$log")" "$(figure peak_rss_mb: "$log")"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: error: failing inputs in: ${failed[*]}; see lab/fuzz/artifacts" >&2
    exit 1
fi
