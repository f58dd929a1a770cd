# Two commands are enough: `make demo` and `make test`. Both install what they need and say so.
ARGS ?=

.PHONY: demo test test-all setup check fuzz neon bench web docs python

demo: setup web   ## build (minutes at first), serve the bundled sample, open a viewer on it; prints a link
	cargo run --release -- demo $(ARGS)

test:             ## install what the tests need and run all of them
	tools/test.sh

test-all: test    ## all tests, and those that xarray, zarr-python and fsspec have for engines and stores like ours
	.venv/bin/python tests/peers/run.py

setup:            ## what building needs: nasm, a recent CMake, node modules
	tools/setup.sh build

web: setup web/dist/index.html ## the viewer's assets, embedded in the binary

web/dist/index.html: $(shell find web/src web/public -type f) web/index.html web/vite.config.ts web/package-lock.json | setup
	cd web && npm run --silent build

check: web        ## the quick checks before a commit
	cargo fmt --all --check && cargo clippy --workspace --all-targets --features corridor/lab -- -D warnings

fuzz: setup       ## every fuzz target for SECONDS_EACH seconds (default 60)
	tools/fuzz.sh

neon:             ## the caster's tests on 64-bit ARM, emulated
	tools/neon.sh

bench: setup web  ## the reproducible measurements, as JSON
	cargo run --release --features lab --quiet -- bench all --json

python: setup     ## the Python package as a wheel in target/wheels
	cd python && ../.venv/bin/maturin build --release --quiet --out ../target/wheels

docs: setup       ## the code's documentation
	cargo doc --workspace --no-deps
