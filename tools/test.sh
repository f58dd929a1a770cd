#!/usr/bin/env bash
# All tests, cheapest first. Prints how long each stage took. Logs and screenshots go to $CORRIDOR_TEST_OUT
# (default: a new folder under /tmp, named at the end).
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh build
tools/setup.sh test
export CORRIDOR_TEST_OUT="${CORRIDOR_TEST_OUT:-$(mktemp -d /tmp/corridor-test.XXXXXX)}"
export CORRIDOR_TEST_PYTHON="$PWD/.venv/bin/python"
# A fixed seed makes the random cases of this script reproducible; `cargo test` alone tries new ones.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1992}"
# The GPU caster is always tested on Mesa's software driver; without that driver its tests fail.
VK_ICD_FILENAMES="$(compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' | head -1)"
export VK_ICD_FILENAMES CORRIDOR_TEST_GPU=1
mkdir -p "$CORRIDOR_TEST_OUT"

stage() { # stage NAME COMMAND...
    local name=$1 start=$SECONDS
    shift
    echo "== $name"
    "$@"
    echo "== $name: $((SECONDS - start)) s"
}

python_tests() {
    .venv/bin/python -m mypy --strict python/corridor
    .venv/bin/python -m pytest -q --doctest-modules python/corridor
    .venv/bin/python -m pytest -q -rs tests/python
}

web() { (cd web && npm run --silent "$1"); }

stage "format" cargo fmt --all --check
stage "viewer: check, unit tests, build" eval 'web check && web test && web build'
features=corridor/hwloc,corridor/lab
stage "clippy" cargo clippy --workspace --all-targets --features "$features" --quiet -- -D warnings
stage "tests of the crates" cargo test --workspace --exclude corridor-python --features "$features" --quiet
# As people build it, without the laboratory; all other crates are those of the stages before.
stage "clippy, program without lab" cargo clippy --workspace --all-targets --features corridor/hwloc --quiet -- -D warnings
stage "tests of the program without lab" cargo test --workspace --exclude corridor-python --features corridor/hwloc --bin corridor --quiet
# With the same features as the tests but MPI, which only the binary and one small crate are compiled again for.
all=$features,corridor/mpi
stage "program" cargo build --workspace --exclude corridor-python --all-targets --quiet --features "$all"
stage "ranks by MPI" cargo test --workspace --exclude corridor-python --quiet --features "$all" --test mpirun
export CORRIDOR_BIN="$PWD/${CARGO_TARGET_DIR:-target}/debug/corridor"
case "${CARGO_TARGET_DIR:-}" in /*) CORRIDOR_BIN="$CARGO_TARGET_DIR/debug/corridor" ;; esac
stage "Python package" .venv/bin/maturin develop --quiet --manifest-path python/Cargo.toml
stage "against other libraries, across processes" .venv/bin/python -m pytest -q -rs tests/interop
stage "Python package: types, examples, tests" python_tests
stage "field files, through every interface" .venv/bin/python -m pytest -q -rs tests/field
stage "in the browser" .venv/bin/python -m pytest -q -rs tests/browser
echo "all tests passed; logs and screenshots: $CORRIDOR_TEST_OUT"
