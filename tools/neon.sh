#!/usr/bin/env bash
# Tests the caster's NEON instructions on other machines: compiles for 64-bit ARM and runs the tests in QEMU. Compares
# every operation with the scalar one, then pictures with the reference caster, the golden images and the scalar caster.
# Not part of `make test`: it installs a compiler. Timings are meaningless in emulation.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh neon
target=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1992}" # fixed seed, as in all tests
# Building takes longer than running: dependencies are not optimized, the caster only a little.
quick=(--config 'profile.dev.package."*".opt-level=0' --config profile.dev.package.corridor-render.opt-level=1)

on_arm() { cargo test --quiet --package corridor-render --target $target "${quick[@]}" "$@"; }

on_arm --lib
on_arm --test golden --test picture
on_arm --test quality every_set_of_instructions
on_arm --test tint every_set_of_instructions
