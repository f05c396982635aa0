# The door: every command of the project is a target here; Rust (`xtask`) or a room's own program does the work.
# Caches live in the user's home, outside the checkout, so that a fresh clone starts warm.
SHELL := /bin/bash
CACHE ?= $(HOME)/.cache/metal3-rs
XTASK := cargo run --quiet --locked -p xtask --
export CACHE

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-22s %s\n", $$1, $$2}'

# --- everyday ---------------------------------------------------------------------------------------------------

.PHONY: tools check test fixtures deny
tools: ## name what is missing on this machine, with the command that installs it
	@command -v cargo >/dev/null || { echo "Rust is missing: install rustup, then run: rustup toolchain install 1.95.0" >&2; exit 1; }
	@command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "a C compiler is missing: apt-get install -y gcc" >&2; exit 1; }

check: tools ## format, lints, generated files up to date, documentation
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	$(XTASK) codegen --check
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --locked

test: tools ## every unit, property and conformance test
	INSTA_UPDATE=no cargo test --workspace --locked

fixtures: tools ## compare with recorded answers and manifests of the Go managers in FIXTURES=DIR
	@test -d "$(FIXTURES)" || { echo "set FIXTURES to the folder that holds upstream/ and golden/" >&2; exit 1; }
	$(XTASK) crd-diff "$(FIXTURES)/upstream"
	$(XTASK) decode "$(FIXTURES)"
	$(XTASK) golden "$(FIXTURES)/golden"

DENY_VERSION := 0.20.2
DENY := $(CACHE)/tools/bin/cargo-deny
$(DENY):
	cargo install cargo-deny --quiet --locked --version $(DENY_VERSION) --root $(CACHE)/tools

deny: tools $(DENY) ## licences, sources and duplicates of dependencies
	$(DENY) --locked check bans licenses sources

# --- the simulated API server -----------------------------------------------------------------------------------

.PHONY: conformance conformance-real
conformance: tools ## check the claims of the simulated API server on itself
	cargo run --quiet --locked -p metal3-simcluster --bin conformance

conformance-real: tools ## check them on the API server of KUBECONFIG=FILE, and compare both on random requests
	@test -f "$(KUBECONFIG)" || { echo "set KUBECONFIG to the file of an API server without controllers" >&2; exit 1; }
	cargo run --quiet --locked -p metal3-simcluster --bin conformance -- --kubeconfig "$(KUBECONFIG)" --differ 1 --differ 2 --differ 3
