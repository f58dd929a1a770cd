#!/usr/bin/env bash
# Installs missing requirements of building (`build`), testing (`test`) or testing the caster for 64-bit ARM (`neon`), and
# prints what it installs. System packages need root and apt; without them the script lists the packages and stops.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-build}

packages=()
need() { # need COMMAND PACKAGE
    command -v "$1" > /dev/null || packages+=("$2")
}
need cc build-essential
if [ "$what" = neon ]; then
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    [ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || packages+=(libc6-dev-arm64-cross)
    need qemu-aarch64 qemu-user
else
    need make make
    need nasm nasm # without it libjpeg-turbo silently uses code that is four times slower
    python3 -c 'import ensurepip' 2> /dev/null || packages+=(python3-venv)
fi
if [ "$what" = test ]; then
    need chromium chromium
    need ip iproute2
    need mpicc libopenmpi-dev # pictures by several processes (feature `mpi`)
    need mpirun openmpi-bin
    need pkg-config pkg-config
    [ -e /usr/include/hwloc.h ] || packages+=(libhwloc-dev) # where cores and network cards are (feature `hwloc`)
    [ -e /usr/include/libudev.h ] || packages+=(libudev-dev)
    need ssh openssh-client
    [ -x /usr/sbin/nginx ] || need nginx nginx-light # reverse proxy of the viewer; runs in tests only
    # GPU in software, for comparisons of the GPU caster with the CPU caster.
    compgen -G '/usr/share/vulkan/icd.d/lvp_icd*.json' > /dev/null || packages+=(mesa-vulkan-drivers libvulkan1)
    [ -x /usr/sbin/sshd ] || need sshd openssh-server # runs in tests only, on loopback with its own configuration
fi
if [ ${#packages[@]} -gt 0 ]; then
    echo "setup: installing system packages: ${packages[*]}"
    if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
        echo "setup: error: installing them needs root and apt-get; install ${packages[*]} and run this script again" >&2
        exit 1
    fi
    apt-get update -qq
    # Prevents the packages from starting services: the tests start their own sshd on loopback.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" > /dev/null
fi

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
found=$(rustc --version 2> /dev/null | cut -d ' ' -f 2 || true)
if [ "$(printf '%s\n' "$needed" "${found:-0}" | sort -V | head -1)" != "$needed" ]; then
    echo "setup: error: expected Rust $needed or newer (https://rustup.rs), found ${found:-none}" >&2
    exit 1
fi

if [ "$what" = neon ]; then # only the caster: no Python, no viewer
    target=aarch64-unknown-linux-gnu
    [ ! -d "$(rustc --print target-libdir --target $target)" ] || exit 0
    echo "setup: installing Rust's standard library for $target with rustup"
    if ! command -v rustup > /dev/null; then
        echo "setup: error: rustup is missing (https://rustup.rs); install the standard library by other means and run this script again" >&2
        exit 1
    fi
    rustup --quiet target add $target
    exit
fi

requirements=tools/requirements-$what.txt
if ! cmp -s "$requirements" ".venv/installed-$what.txt"; then
    echo "setup: installing Python packages from $requirements into .venv"
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" ".venv/installed-$what.txt"
fi

if ! cmp -s web/package-lock.json web/node_modules/.installed-lock.json; then
    echo "setup: installing the viewer's build tools from web/package-lock.json into web/node_modules"
    (cd web && npm ci --silent --no-audit --no-fund)
    cp web/package-lock.json web/node_modules/.installed-lock.json
fi
