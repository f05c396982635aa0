# All commands of the project. The work is done in Rust, by `xtask` or a crate's own program.
# Caches live in the user's home, outside the checkout, so that a fresh clone starts warm.
SHELL := /bin/bash
CACHE ?= $(HOME)/.cache/metal3-rs
# Programs are named by `--bin` or `--example`, never by `-p`: a single package resolves to fewer features of its dependencies
# than the workspace, and each set of features compiles the toolkit and the products again.
XTASK := cargo run --quiet --locked --bin xtask --
PARITY := cargo run --quiet --locked --bin parity --
SCENARIOS := cargo run --quiet --locked --bin scenarios --
export CACHE

# Of a release some of these are the name of a tag, which may have characters that are commands for make or for a shell. Elsewhere an
# environment may have a VERSION of its own.
TAGGED := RELEASE_TAG VERSION PLUGIN_URL SOURCE BUILDER REGISTRY MAIN
RELEASING := release% images% image program plugin% chart% push% bundle sbom sums sign verify-release cosign registry-login trust-check
COMMANDS := ` $$ " ' \ ; | & < > ( )
ifneq ($(value RELEASE_TAG)$(filter $(RELEASING),$(MAKECMDGOALS)),)
$(foreach name,$(TAGGED),$(foreach character,$(COMMANDS),$(if $(findstring $(character),$(value $(name))),$(error $(name) has a character that is no part of a version, URL or branch: $(character)))))
endif

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-22s %s\n", $$1, $$2}'

# --- everyday ---------------------------------------------------------------------------------------------------

.PHONY: tools rust check test fixtures deny
tools: rust ## name missing tools with the command that installs them
	@command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer" >&2; exit 1; }

rust: # all that most of the commands need
	@command -v cargo >/dev/null || { echo "Rust is missing: install rustup, then run: rustup toolchain install 1.95.0" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "a C compiler is missing: apt-get install -y gcc" >&2; exit 1; }

check: tools ## formatting, lints, generated files, the table of fields, dependency directions, rustdoc
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	cargo clippy --quiet --locked --package metal3-manager --bin capm3 -- -D warnings # the features of `make demo`
	$(XTASK) codegen --check
	$(XTASK) fields --check
	$(XTASK) arrows
	$(XTASK) lints
	@e2e/metal3-dev-env/check.sh
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --locked

.PHONY: fields-prove
fields-prove: tools ## drop each member of docs/fields.md that acts, and require that its test fails (SAMPLE)
	$(XTASK) fields --prove $(addprefix --sample ,$(SAMPLE))

test: tools ## all tests and scripts, with a forecast, progress and one summary; once built, at most 8 minutes on two cores
	@echo "make test: unit, property and conformance tests, sweeps of faults, and the scripts of e2e/scenarios"
	@cargo run --locked --bin run-tests -- --record $(CACHE)/test-times.tsv --estimate crates/proof/run-tests/estimate.tsv

# STORIES, SWITCH_STORIES, CLAIM_STORIES: FIRST-LAST; the first ones are in `make test`. HISTORIES: their number.
STORIES ?= 200-2000
SWITCH_STORIES ?= 30-600
CLAIM_STORIES ?= 6-60
HISTORIES ?= 2000
.PHONY: test-long
# Fails if the filter before it matches no test.
ONE_TEST = awk '{ print; fflush() } /^test result: ok. [1-9]/ { found = 1 } END { exit !found }'
test-long: .SHELLFLAGS = -o pipefail -c
test-long: tools ## the generated runs that `make test` has a part of: stories of a host, of switches and of claims, histories of addresses (STORIES, SWITCH_STORIES, CLAIM_STORIES, HISTORIES)
	METAL3_HOSTS_STORIES=$(STORIES) METAL3_SWITCH_STORIES=$(SWITCH_STORIES) METAL3_CLAIM_STORIES=$(CLAIM_STORIES) \
	  cargo test --workspace --locked --test life -- generated_stories | $(ONE_TEST)
	IPAM_SEEDS=$(HISTORIES) cargo test --workspace --locked --lib -- no_random_history | $(ONE_TEST)

# TARGET: names of targets. Optimised, with the checks of arithmetic that tests have.
FUZZ = CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
  cargo run --quiet --release --locked --bin fuzz -- $(addprefix --target ,$(TARGET))
SECONDS_EACH ?= 60
PLANTED_INPUTS ?= 300000
.PHONY: fuzz fuzz-planted
fuzz: rust ## run every fuzz target for SECONDS_EACH=60 seconds (TARGET, SEED)
	@$(FUZZ) --seconds $(SECONDS_EACH) --seed $(SEED)
fuzz-planted: rust ## let every fuzz target find a planted defect within PLANTED_INPUTS inputs (TARGET, SEED)
	@$(FUZZ) --planted $(PLANTED_INPUTS) --seed $(SEED)

# Scripts that apply manifests published by other projects.
PUBLISHED = $(sort $(wildcard e2e/scenarios/published/*.yaml))
fixtures: tools ## compare with recorded answers and manifests of the Go managers in FIXTURES=DIR
	@test -d "$(FIXTURES)" || { echo "set FIXTURES to the folder that holds upstream/ and golden/" >&2; exit 1; }
	$(PARITY) crd-diff "$(FIXTURES)/upstream"
	$(PARITY) decode "$(FIXTURES)/upstream" $(addprefix --quoted ,$(wildcard $(FIXTURES)/seeds/000*))
	$(PARITY) golden "$(FIXTURES)/golden" --whole
	@$(SCENARIOS) run $(PUBLISHED) --published "$(FIXTURES)" --twice

DENY_VERSION := 0.20.2
DENY := $(CACHE)/tools/bin/cargo-deny
# Without optimisation: it runs for seconds, and takes minutes to optimise.
$(DENY):
	cargo install cargo-deny --quiet --debug --locked --version $(DENY_VERSION) --root $(CACHE)/tools

# ADVISORIES: a clone of RustSec's advisory-db. Without it, advisories are not checked, and the output says so.
deny: tools $(DENY) ## licences, sources, duplicates and advisories of dependencies (ADVISORIES=folder of an advisory-db)
	@.ci/deny $(DENY) $(ADVISORIES)

.PHONY: advisories
advisories: ## clone RustSec's advisory-db into ADVISORIES
	@test -n "$(ADVISORIES)" || { echo "set ADVISORIES to the folder of the clone" >&2; exit 1; }
	git clone --quiet --depth 1 https://github.com/rustsec/advisory-db "$(ADVISORIES)"

.PHONY: deny-test
deny-test: tools $(DENY) ## check that an advisory against a dependency fails `make deny`, on a fabricated database
	@.ci/deny-test $(DENY)

# --- the simulated world ------------------------------------------------------------------------------------------

# HOSTS: number of machines. SPEED: how many times faster than real ones. ONCE=1 ends when the cluster is ready.
# SCENARIO: a script of e2e/scenarios instead of the cluster, or `list`. PAUSE: seconds before each of its steps.
# KUBECONFIG_FILE: where the kubeconfig is written.
SPEED ?= 40
KUBECONFIG_FILE ?= $(CACHE)/sandbox.kubeconfig
# The program that tests use, if it is built. Otherwise one of its own, which takes less time to build than to optimise: that
# shares nothing with the tests, so that it is a package with its features alone.
DEMO_PROFILE ?= $(if $(wildcard $(CARGO_BIN)/capm3),dev,demo)
DEMO_PROGRAM = $(if $(filter dev,$(DEMO_PROFILE)),,--profile $(DEMO_PROFILE) --package metal3-manager) --bin capm3
.PHONY: demo scenario
demo: rust ## run a cluster on simulated machines, with a kubeconfig (ONCE=1, BARE=1, HOSTS, SPEED, SCENARIO=name, PAUSE, KUBECONFIG_FILE)
	@echo "make demo: builds the program (some minutes on a new machine, seconds later), then shows a cluster in the making"
	@cargo run --locked $(DEMO_PROGRAM) -- sandbox $(addprefix --hosts ,$(HOSTS)) --speed $(SPEED) \
	  --kubeconfig $(KUBECONFIG_FILE) \
	  $(if $(ONCE),--once) $(if $(BARE),--bare) $(addprefix --scenario ,$(SCENARIO)) $(addprefix --pause ,$(PAUSE))

# BROWSER: Chromium. HOSTS: of the large fleet. PICTURES: folder for screenshots, such as docs/img.
BROWSER ?= chromium
CHROMIUM = apt-get install -y -qq --no-install-recommends chromium
.PHONY: console-test browser
console-test: rust browser ## look at the console with Chromium: each view, texts that are scripts, loss and return, HOSTS=1000 hosts (PICTURES, BROWSER)
	@profile=$$(mktemp -d) && trap 'rm -rf "$$profile"' EXIT && \
	  cargo run --quiet --locked --bin console-test -- --browser "$(BROWSER)" --profile "$$profile" \
	    $(addprefix --hosts ,$(HOSTS)) $(addprefix --pictures ,$(PICTURES))
browser: # installed as root, otherwise named
	@command -v "$(BROWSER)" >/dev/null || { test "$(BROWSER)" = chromium && test "$$(id -u)" -eq 0 && export DEBIAN_FRONTEND=noninteractive && \
	  { $(CHROMIUM) >&2 || { apt-get update -qq >&2 && $(CHROMIUM) >&2; }; }; } || \
	  { echo "$(BROWSER) is missing: run as root: $(CHROMIUM)" >&2; exit 1; }

# FILE: one script; default: all of e2e/scenarios.
SEED ?= 1
scenario: rust ## run the scripts of e2e/scenarios on the simulated world, each twice with equal logs (FILE, SEED)
	@$(SCENARIOS) run $(FILE) --twice $(addprefix --seed ,$(SEED))

.PHONY: scenario-faults
# Optimised, because it runs hundreds of times.
scenario-faults: rust ## run them with each seed from 1 to SEEDS=200 and random request failures (FILE)
	@cargo run --quiet --locked --release --bin scenarios -- run $(FILE) --faults \
	  --seeds $(if $(filter file,$(origin SEEDS)),200,$(SEEDS))

# --- the real management cluster (e2e/stack) and its process kubelet (e2e/kubelet) --------------------------------
STACK = $(CARGO_BIN)/stack --name $(STACK_NAME)
STACK_NAME ?= default
CARGO_BIN = $(or $(CARGO_TARGET_DIR),target)/debug

.PHONY: caches stack-tools stack stack-down stack-init stack-exec test-e2e-stack stack-facts
caches: stack-tools ## build the Go programs and install the Python packages of the real parts
	@e2e/ironic/ironic.sh python
	@$(STACK) build

stack-tools:
	@cargo build --quiet --locked --bin stack --bin process-kubelet --bin test-server

stack: stack-tools ## start a real Cluster API management cluster (STACK_NAME=default)
	@$(STACK) up

stack-down: stack-tools ## stop it and remove all but the cache of binaries
	@$(STACK) down

stack-init: stack-tools ## install Cluster API into it with clusterctl
	@$(STACK) init --core cluster-api --bootstrap kubeadm --control-plane kubeadm --wait-providers

stack-exec: stack-tools ## run CMD='…' in its network, with its kubectl and clusterctl
	@$(STACK) exec bash -c '$(CMD)'

test-e2e-stack: stack-tools ## check the claims about the stack and the process kubelet (UPSTREAM=folder of manifests)
	@$(STACK) claims $(if $(UPSTREAM),--upstream $(UPSTREAM))

stack-facts: stack-tools ## measure the stack and write the figures into docs/development.md
	@$(STACK) facts --document docs/development.md

.PHONY: test-e2e-release
# SUITE=addresses or SUITE=machines runs one suite; the default runs both, each on its own stack.
# The program is built without optimisation, which does not matter here; PROFILE=dist optimises. The archive for machines without
# access to other registries is loaded into a registry of the stack, and all is installed from there: nothing else can be reached.
# TEMPLATES: a folder of templates that the Go managers publish.
ELSEWHERE = registry.example/metal3/capm3
BUNDLED = $(CHECKED)/release
BUNDLED_IMAGES = $(CHECKED)/images
LOADED = $(CHECKED)/loaded
.PHONY: bundled-release
bundled-release: ARCHS = $(ARCH)
bundled-release: IMAGES = $(BUNDLED_IMAGES)
bundled-release: stack-tools program images
	@rm -rf "$(BUNDLED)"
	@image=$$($(XTASK) push $(BUNDLED_IMAGES) --registry "$(ELSEWHERE)" --only-name) && \
	  $(XTASK) release "$(BUNDLED)" --image "$$image" >/dev/null && \
	  $(XTASK) chart "$(BUNDLED)/charts" --image "$$image" >/dev/null && \
	  $(XTASK) bundle "$(BUNDLED).tar" --release "$(BUNDLED)" --images "$(BUNDLED_IMAGES)"
test-e2e-release: PROFILE = dev
test-e2e-release: bundled-release ## check the release on a fresh stack: clusterctl and helm install it, the kubelet pulls and runs it (SUITE, TEMPLATES)
	@rm -rf "$(LOADED)"
	@helm=$$($(STACK) tool helm) && $(STACK) products --bundle $(BUNDLED).tar --release $(LOADED) --binary $(PROGRAM) \
	  --charts $(LOADED)/charts --helm "$$helm" $(if $(SUITE),--suite $(SUITE)) $(addprefix --templates ,$(TEMPLATES))

# --- the real Ironic (e2e/ironic) and machines for it (crates/sim/bmc) --------------------------------------------
# The real Ironic. e2e/ironic/ironic.sh reads INSTANCE, PORT, ENTRY=fast|stock, DB=sqlite|mariadb and EXTRA_CONF.
export INSTANCE PORT ENTRY DB EXTRA_CONF
.PHONY: ironic ironic-down ironic-status
ironic: ## start the real Ironic on this machine
	@e2e/ironic/ironic.sh up
ironic-down: ## stop it and keep its logs
	@e2e/ironic/ironic.sh down
ironic-status: ## print its address, credentials file and memory
	@e2e/ironic/ironic.sh status

.PHONY: ironic-leaves-nothing
ironic-leaves-nothing: ## start and stop Ironic from a clean checkout, and fail on anything left behind (FRESH=1 with an empty cache)
	@e2e/ironic/leaves_nothing.sh

# Lives on that Ironic. LEVEL, NODES; BMC=sushy|labhosts at level 2.
IRONIC_LIFE = cargo build --quiet --locked --bin labhosts --bin ironic-life && \
	$${CARGO_TARGET_DIR:-target}/debug/ironic-life
LEVEL ?= 3
NODES ?= 1
BMC ?= sushy
.PHONY: ironic-life ironic-faults redfish-suite
ironic-life: rust ironic ## take NODES nodes through their whole life at LEVEL 1, 2 or 3
	@$(IRONIC_LIFE) --level $(LEVEL) --nodes $(NODES) --bmc $(BMC)
# An Ironic for one command, which ends with it in any case; a running Ironic of another command is rejected.
OWN_IRONIC = NEW=1 e2e/ironic/ironic.sh up && trap 'e2e/ironic/ironic.sh down' EXIT
# The stock entry point costs a third of a second more per BMC call than the fast one.
.PHONY: ironic-life-stock
ironic-life-stock: INSTANCE = stock
ironic-life-stock: ENTRY = stock
ironic-life-stock: rust ## run one whole life at level 3 on Ironic's stock entry point
	@$(OWN_IRONIC) && $(IRONIC_LIFE) --level 3 --nodes 1 --port 27843
ironic-faults host-faults: INSTANCE = faults
ironic-faults host-faults: EXTRA_CONF = e2e/ironic/impatient.conf
ironic-faults: rust ## write docs/ironic-faults.md from the real Ironic
	@$(OWN_IRONIC) && $(IRONIC_LIFE) --faults docs/ironic-faults.md --port 27543

redfish-suite: rust ## compare labhosts with sushy-tools' emulator
	@python=$$(e2e/ironic/ironic.sh python) && $(IRONIC_LIFE) --redfish-suite "$$python" --port 27643

SWITCHES = crates/hosts/src/switches/tests/contract
.PHONY: ironic-switches
ironic-switches: ## have Ironic's networking service read the file of switches that the tests of hosts write
	@python=$$(e2e/ironic/ironic.sh python) && "$$python" e2e/ironic/read_switches.py $(SWITCHES)/cases.json $(SWITCHES)/switch-configs.conf

# The real program on that Ironic, over the simulated API server. HOSTS=2; HOST_LIFE passes options such as "--direct".
HOST_LIFE ?=
.PHONY: host-life
host-life: rust ironic ## run HOSTS hosts through their whole life at LEVEL 1, 2 or 3 with the real program
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(CARGO_BIN)/host-life --level $(LEVEL) --hosts $(or $(HOSTS),1) $(HOST_LIFE)

.PHONY: host-raid
host-raid: INSTANCE = raid
host-raid: rust ## make, change and remove RAID volumes on its own real Ironic, with a kill after each change
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --level 3 --profile storage --raid --port 27553

.PHONY: host-cleaning
host-cleaning: INSTANCE = cleaning
host-cleaning: rust ## keep a disk of a machine that is deployed and cleaned on its own real Ironic, with a kill after each change
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --level 3 --profile storage --cleaning --port 27603

.PHONY: host-bios
host-bios: INSTANCE = bios
host-bios: EXTRA_CONF = e2e/ironic/bios.conf
host-bios: rust ## change BIOS settings on its own real Ironic, with a kill after each change
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --level 3 --bios --port 27573 --patience 900

.PHONY: host-updates
host-updates: INSTANCE = updates
host-updates: rust ## update the firmware of a machine on its own real Ironic, with a kill after each change
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --level 3 --updates --port 27583 --patience 900

.PHONY: host-services
host-services: INSTANCE = services
host-services: EXTRA_CONF = e2e/ironic/bios.conf
host-services: rust ## change BIOS settings and firmware of a running machine at reboots on its own real Ironic, with a kill after each change
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --level 3 --services --port 27593 --patience 900

# SCENARIO: one or several of live-iso, data-image, subscription, fast-inspection, named-agent, redirect, oci, deploy-step,
# architectures; default: all.
.PHONY: e2e-hosts-images
e2e-hosts-images: INSTANCE = images
e2e-hosts-images: EXTRA_CONF = e2e/ironic/images.conf
e2e-hosts-images: rust ## deploy images of each kind and use what belongs to a host on its own real Ironic, with a kill after each order (SCENARIO)
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --level 3 --port 27563 --images $(SCENARIO)

.PHONY: host-faults
host-faults: rust ## write docs/host-faults.md from the real program on the real Ironic
	@cargo build --quiet --locked --bin capm3 --bin labhosts --bin host-life
	@$(OWN_IRONIC) && $(CARGO_BIN)/host-life --faults docs/host-faults.md --port 27543 --patience 1200

# --- end to end: the stack, the real Ironic, machines for it, and the release --------------------------------------
# REPORT: file for steps, times and requests. PART: one or several of the parts beyond one cluster's life.
# SEED: determines when leaders are killed. CLUSTER_AUTOSCALER_BIN: the cluster-autoscaler that part `topology` runs.
REPORT ?= $(or $(CARGO_TARGET_DIR),target)/e2e-report.md
.PHONY: e2e e2e-smoke
e2e e2e-smoke: STACK_NAME = e2e
e2e e2e-smoke: PROFILE = dev
e2e: EXTENT = $(if $(PART),$(addprefix --part ,$(PART)),--whole)
e2e: $(if $(PART),,ironic-life-stock)
e2e e2e-smoke: stack-tools release program
	@e2e/ironic/ironic.sh python >/dev/null
	@cargo build --quiet --locked --bin labhosts
	$(STACK) lifecycle --release $(RELEASE) --binary $(PROGRAM) --ironic e2e/ironic/ironic.sh \
	  --labhosts $(CARGO_BIN)/labhosts --report $(REPORT) $(EXTENT) --seed $(SEED) \
	  $(addprefix --autoscaler ,$(CLUSTER_AUTOSCALER_BIN))
e2e: ## run all suites on real parts: lives, rolls, remediation, move, upgrade, kills, another infrastructure, a ClusterClass, stock Ironic (PART)
e2e-smoke: ## provision machines of a real Ironic as Nodes of a real Cluster API cluster and deprovision them, once

.PHONY: e2e-chart
e2e-chart: STACK_NAME = chart
e2e-chart: PROFILE = dev
e2e-chart: stack-tools release program chart ## install, upgrade, roll back and uninstall the charts with the real Helm, while hosts of a real Ironic run
	@e2e/ironic/ironic.sh python >/dev/null
	@cargo build --quiet --locked --bin labhosts
	@helm=$$($(STACK) tool helm) && $(STACK) charts --release $(RELEASE) --binary $(PROGRAM) --charts "$(CHARTS)" --helm "$$helm" \
	  --ironic e2e/ironic/ironic.sh --labhosts $(CARGO_BIN)/labhosts

# PREVIOUS: the commit of the release to upgrade from and to roll back to; its program and charts are built once, and kept by commit.
PREVIOUS ?= $(shell sed -n 's/^Upgraded from: `\([0-9a-f]*\)`$$/\1/p' docs/releasing.md)
PREVIOUS_HOME = $(CACHE)/previous/$(PREVIOUS)
PREVIOUS_IMAGE = localhost/metal3/capm3-previous:dev
.PHONY: previous e2e-previous
previous: tools ## build the release before this one, of the commit PREVIOUS
	@case "$(PREVIOUS)" in "" | *[!0-9a-f]*) echo "PREVIOUS=$(PREVIOUS) is no commit; docs/releasing.md names one to upgrade from" >&2; exit 1 ;; esac
	@test -e "$(PREVIOUS_HOME)/capm3" || { rm -rf "$(PREVIOUS_HOME)" && mkdir -p "$(PREVIOUS_HOME)" && cd "$(PREVIOUS_HOME)" && \
	  echo "building the previous release, $(PREVIOUS)" && git clone --quiet --no-checkout "$(CURDIR)" source && \
	  git -C source checkout --quiet "$(PREVIOUS)" && \
	  env -u MAKEFLAGS -u MFLAGS CARGO_TARGET_DIR="$(CACHE)/previous/target" $(MAKE) --silent -C source program chart PROFILE=dev \
	    IMAGE=$(PREVIOUS_IMAGE) CHARTS="$(PREVIOUS_HOME)/charts" && \
	  cp "$(CACHE)/previous/target/$(TRIPLE)/debug/capm3" capm3.new && mv capm3.new capm3 && rm -rf source "$(CACHE)/previous/target"; }
e2e-previous: STACK_NAME = previous
e2e-previous: PROFILE = dev
e2e-previous: stack-tools previous release program chart ## upgrade the previous release to this one and roll back with the real Helm, while hosts of a real Ironic are in flight (PREVIOUS)
	@e2e/ironic/ironic.sh python >/dev/null
	@cargo build --quiet --locked --bin labhosts
	@helm=$$($(STACK) tool helm) && $(STACK) previous --release $(RELEASE) --binary $(PROGRAM) --charts "$(CHARTS)" --helm "$$helm" \
	  --previous-charts "$(PREVIOUS_HOME)/charts" --previous-binary "$(PREVIOUS_HOME)/capm3" \
	  --ironic e2e/ironic/ironic.sh --labhosts $(CARGO_BIN)/labhosts

# WRITE=1: write what was seen into docs/install.md, instead of comparing it. ONLY: a part of the names of claims.
.PHONY: e2e-install
e2e-install: STACK_NAME = install
e2e-install: PROFILE = dev
e2e-install: bundled-release ## run the lines of README.md on the real parts, and what wrong inputs look like, as docs/install.md has it (WRITE=1, ONLY)
	@e2e/ironic/ironic.sh python >/dev/null
	@cargo build --quiet --locked --bin labhosts
	@$(STACK) tool helm >/dev/null
	@rm -rf "$(LOADED)"
	@$(STACK) installation --bundle $(BUNDLED).tar --release $(LOADED) --binary $(PROGRAM) \
	  --ironic e2e/ironic/ironic.sh --labhosts $(CARGO_BIN)/labhosts --readme README.md --page docs/install.md $(if $(WRITE),--write) $(addprefix --only ,$(ONLY))

.PHONY: e2e-operator
e2e-operator: STACK_NAME = operator
e2e-operator: PROFILE = dev
e2e-operator: bundled-release ## run the commands of docs/install.md for the Cluster API operator: it installs, upgrades and deletes the release
	@rm -rf "$(LOADED)"
	@$(STACK) operator --bundle $(BUNDLED).tar --release $(LOADED) --binary $(PROGRAM) --page docs/install.md

# UPSTREAM_BIN: folder of the Go managers and their manifests. WAY: scale or upgrade; default: both.
SWAP_REPORT ?= $(or $(CARGO_TARGET_DIR),target)/swap.md
.PHONY: e2e-swap
e2e-swap: STACK_NAME = swap
e2e-swap: PROFILE = dev
e2e-swap: $(if $(UPSTREAM_BIN),stack-tools release program) ## switch a live installation of the Go managers in UPSTREAM_BIN=folder to ours and back (WAY)
	@test -n "$(UPSTREAM_BIN)" || { echo "set UPSTREAM_BIN to a folder with the programs and manifests of the Go managers;" \
	  "docs/development.md, \"The swap\", says how it is made" >&2; exit 1; }
	@e2e/ironic/ironic.sh python >/dev/null
	@cargo build --quiet --locked --bin labhosts
	$(STACK) swap --release $(RELEASE) --binary $(PROGRAM) --ironic e2e/ironic/ironic.sh \
	  --labhosts $(CARGO_BIN)/labhosts --upstream-bin $(UPSTREAM_BIN) --report $(SWAP_REPORT) $(addprefix --way ,$(WAY))

# FILE: one script; default: those that compare the worlds. SAID: folder of the collected conditions.
COMPARED = $(sort $(wildcard e2e/scenarios/0[1-5]-*.yaml))
SAID ?= $(or $(CARGO_TARGET_DIR),target)/scenarios
REAL_SCENARIOS = $(STACK) scenarios --release $(RELEASE) --binary $(PROGRAM) --ironic e2e/ironic/ironic.sh \
  --labhosts $(CARGO_BIN)/labhosts
.PHONY: e2e-scenarios e2e-mixed scenario-tools scenario-differences
e2e-scenarios e2e-mixed: STACK_NAME = scenarios
e2e-scenarios e2e-mixed: PROFILE = dev
e2e-scenarios: scenario-tools ## run scripts on real Cluster API managers and a real Ironic, and compare with the simulated world (FILE)
	@mkdir -p $(SAID)
	$(REAL_SCENARIOS) $(or $(FILE),$(COMPARED)) --observed $(SAID)/real.txt --asked $(SAID)/real-asked.txt
	@$(SCENARIOS) run $(or $(FILE),$(COMPARED)) --observed $(SAID)/simulated.txt --asked $(SAID)/simulated-asked.txt
	@$(SCENARIOS) observed $(SAID)/simulated.txt $(SAID)/real.txt $(if $(FILE),--part)
	@$(SCENARIOS) asked $(SAID)/simulated-asked.txt $(SAID)/real-asked.txt

# With FIXTURES, published manifests are applied, too.
MIXED = $(sort $(wildcard e2e/scenarios/1[2357]-*.yaml)) $(if $(FIXTURES),$(PUBLISHED))
e2e-mixed: scenario-tools ## run the mixed-cluster scripts there, with stand-ins of the other providers (FILE, FIXTURES)
	$(REAL_SCENARIOS) $(or $(FILE),$(MIXED)) $(if $(FIXTURES),--published "$(FIXTURES)")

scenario-tools: stack-tools release program
	@e2e/ironic/ironic.sh python >/dev/null
	@cargo build --quiet --locked --bin labhosts

scenario-differences: rust ## write the results of the last e2e-scenarios into docs/scenarios.md and docs/counts.md
	@$(SCENARIOS) observed $(SAID)/simulated.txt $(SAID)/real.txt --write
	@$(SCENARIOS) asked $(SAID)/simulated-asked.txt $(SAID)/real-asked.txt --write

# UPSTREAM: a clone of metal3-dev-env, in which each name is checked at the pinned commit.
.PHONY: dev-env-check
dev-env-check: ## check the overlay for a metal3-dev-env against its pinned list (UPSTREAM=folder of a clone)
	@e2e/metal3-dev-env/check.sh $(UPSTREAM)

# --- the client of Ironic (crates/ironic), against the real one -----------------------------------------------------

IRONIC_CREDENTIALS ?= $(CACHE)/ironic/run/$(or $(INSTANCE),default)/endpoint.json
IRONIC_CONTRACT = cargo run --quiet --locked --bin ironic-contract -- --credentials $(IRONIC_CREDENTIALS)
.PHONY: ironic-contract ironic-differ
# The Ironic is started with EXTRA_CONF=crates/proof/conformance-ironic/slow_power.conf.
ironic-contract: rust ## check the Ironic client's assumptions on the real Ironic, which must run
	$(IRONIC_CONTRACT)

# Its own Ironic and machines, which end with it: the suite kills that Ironic and erases its database.
MACHINES_HOME = $(CACHE)/ironic/run/$(INSTANCE)
MACHINES_PORT ?= 27743
.PHONY: ironic-machines
ironic-machines: INSTANCE = machines
ironic-machines: EXTRA_CONF = crates/proof/conformance-ironic/machines.conf
ironic-machines: rust ## check the claims that need BMCs and ramdisks on its own real Ironic
	@cargo build --quiet --locked --bin labhosts --bin ironic-contract
	@$(OWN_IRONIC) || exit; \
	  $(CARGO_BIN)/labhosts --machines small=24 --port $(MACHINES_PORT) --ironic-ca $(MACHINES_HOME)/secrets/ca.crt \
	    --data $(MACHINES_HOME)/machines >$(MACHINES_HOME)/log/machines.log 2>&1 & machines=$$!; \
	  trap 'kill $$machines; e2e/ironic/ironic.sh down' EXIT; \
	  until [ -e $(MACHINES_HOME)/machines/endpoint.json ]; do \
	    kill -0 $$machines || { cat $(MACHINES_HOME)/log/machines.log >&2; exit 1; }; sleep 0.1; done; \
	  $(CARGO_BIN)/ironic-contract --credentials $(MACHINES_HOME)/endpoint.json \
	    --machines $(MACHINES_HOME)/machines/endpoint.json --script e2e/ironic/ironic.sh

# Two Ironics, which end with it: a current one, and one pinned to an unsupported release.
RECORDINGS = crates/ironic/src/client/tests/recorded
RUN = $(CACHE)/ironic/run
.PHONY: ironic-recordings
ironic-recordings: rust ## record the responses of the real Ironic, and of a proxy, for the client's tests
	@cargo build --quiet --locked --bin ironic-contract
	@up() { NEW=1 INSTANCE=$$1 EXTRA_CONF=crates/proof/conformance-ironic/$$2.conf e2e/ironic/ironic.sh up && ours+=" $$1"; }; \
	  down() { for one in $$ours; do INSTANCE=$$one e2e/ironic/ironic.sh down; done; }; \
	  trap down EXIT; up recorded recordings && up recorded-old old_release && nginx=$$(e2e/ironic/ironic.sh nginx) && \
	  $(CARGO_BIN)/ironic-contract --credentials $(RUN)/recorded/endpoint.json --older $(RUN)/recorded-old/endpoint.json \
	    --nginx $$nginx --record $(RECORDINGS)

.PHONY: ironic-feed-cost
# The nodes stay in that Ironic: use a separate one (INSTANCE=cost), on SQLite, where they are copies of one node.
ironic-feed-cost: rust ## measure feed rounds and listings on the running real Ironic with NODES=1000 fake nodes
	$(IRONIC_CONTRACT) --measure-feed $(if $(filter file,$(origin NODES)),1000,$(NODES)) \
	  --database $(dir $(IRONIC_CREDENTIALS))ironic.sqlite

# Start the Ironic without that file; with it, this takes long.
SEEDS ?= 1 2 3
IRONIC_OPERATIONS ?= 300
ironic-differ: rust ## compare random operations on the simulated and the running real Ironic
	$(IRONIC_DIFFER)
IRONIC_DIFFER = $(IRONIC_CONTRACT) $(addprefix --differ ,$(or $(SEEDS),1)) --operations $(IRONIC_OPERATIONS)

# Both of the above on separate Ironics.
.PHONY: ironic-claims ironic-random
ironic-claims: INSTANCE = claims
ironic-claims: EXTRA_CONF = crates/proof/conformance-ironic/slow_power.conf
ironic-claims: rust
	@$(OWN_IRONIC) && $(IRONIC_CONTRACT)
ironic-random: INSTANCE = random
ironic-random: rust
	@$(OWN_IRONIC) && $(IRONIC_DIFFER)

# --- the simulated API server -----------------------------------------------------------------------------------

.PHONY: conformance conformance-real conformance-real-server conformance-real-ironic
conformance: tools ## check the claims about the API server on the simulator
	cargo run --quiet --locked --bin conformance

.PHONY: conformance-matrix
conformance-matrix: tools ## write docs/simcluster.md, the matrix of the simulated API server
	cargo run --quiet --locked --bin conformance -- --matrix > docs/simcluster.md

# OPERATIONS: random requests per seed.
OPERATIONS ?= 10000
conformance-real: conformance-real-server conformance-real-ironic ## check the claims of both simulators on the real parts, and random requests
conformance-real-server: STACK_NAME = conformance
conformance-real-server: tools ## the part about the API server, with OPERATIONS=10000 random requests per seed
	@cargo build --quiet --locked --bin stack --bin conformance
	@trap '$(STACK) down' EXIT; $(STACK) up --only-api && $(STACK) exec $(CARGO_BIN)/conformance \
	  --kubeconfig $(CACHE)/stack/state/$(STACK_NAME)/admin.kubeconfig \
	  --differ 1 --differ 2 --differ 3 --operations $(OPERATIONS)
conformance-real-ironic: ironic-machines ironic-claims ironic-random ## the part about Ironic at every level, with random operations

# RECORD=1: record on a real API server instead of comparing. ONLY: a part of the names of scripts. SHOW=1: print the answers.
KUBECTL_SUITE = $(CARGO_BIN)/kubectl-suite $(addprefix --programs ,$(dir $(shell $(STACK) tool kubectl)) \
  $(dir $(shell $(STACK) tool clusterctl)) $(dir $(shell $(STACK) tool helm))) $(addprefix --only ,$(ONLY)) $(if $(SHOW),--show) \
  --home $(CACHE)/kubectl-suite/$(STACK_NAME)
.PHONY: kubectl-suite
kubectl-suite: STACK_NAME = kubectl
kubectl-suite: stack-tools ## compare kubectl, clusterctl and helm on the sandbox with what they print on a real API server (RECORD=1, ONLY)
	@cargo build --quiet --locked --bin kubectl-suite
ifeq ($(RECORD),)
	@$(KUBECTL_SUITE)
else
	@trap '$(STACK) down' EXIT; $(STACK) up --only-api --collector && \
	  $(STACK) exec $(KUBECTL_SUITE) --record $(CACHE)/stack/state/$(STACK_NAME)/admin.kubeconfig \
	    --schemas crates/sim/cluster/openapi/schemas.json
endif

.PHONY: tutorial
# WRITE=1: write the outputs into the page.
tutorial: stack-tools ## run the commands of docs/tutorial, and compare what they print with the page (WRITE=1)
	@cargo build --quiet --locked --bin kubectl-suite --bin capm3
	@kubectl=$$($(STACK) tool kubectl) && $(CARGO_BIN)/kubectl-suite --tutorial docs/tutorial/README.md $(if $(WRITE),--write) \
	  --programs "$$(dirname "$$kubectl")" --home $(CACHE)/kubectl-suite/tutorial

# --- leases, guard and token reviews, against a real API server ------------------------------------------------

.PHONY: services-real
services-real: STACK_NAME = services
services-real: SERVER = $(CACHE)/stack/state/$(STACK_NAME)/admin.kubeconfig
services-real: tools ## check the toolkit's assumptions on a real API server: leases, guard, token reviews, caches, own writes
	@cargo build --quiet --locked --bin stack
	@cargo build --quiet --locked --example services_real
	@cargo test --quiet --locked --test watch --test barrier --no-run
	@trap '$(STACK) down' EXIT; $(STACK) up --only-api && \
	  $(STACK) exec $(CARGO_BIN)/examples/services_real --kubeconfig $(SERVER) && \
	  $(STACK) exec env METAL3_API_SERVER=$(SERVER) cargo test --quiet --locked --test watch \
	    --test barrier anywhere -- --test-threads=1 --nocapture

.PHONY: counts
counts: tools ## print the ledger: requests to the API server per phase, next to goal and minimum
	@cargo run --quiet --locked --example counts_addresses
	@cargo run --quiet --locked --example counts_hosts

.PHONY: counts-machines
counts-machines: tools ## print the ledger of a machine's life with all three products (MACHINES="1 10 100")
	@cargo run --quiet --locked --example counts_machines -- $(MACHINES)

.PHONY: footprint
footprint: tools ## print the memory of a cached object, per kind
	@cargo run --quiet --locked --example footprint

.PHONY: bench
bench: tools ## instructions of cache, plan, patch and allocation against their baselines; speed of the simulated API server
	@command -v valgrind >/dev/null || { echo "valgrind is missing: apt-get install -y valgrind" >&2; exit 1; }
	@cargo run --quiet --locked --example instructions
	@cargo run --quiet --locked --example grants
	@cargo run --quiet --release --locked --example bench

# --- tenants ------------------------------------------------------------------------------------------------------

# LOGS: folder that keeps the logs, in tenants-run.
.PHONY: e2e-tenants
e2e-tenants: STACK_NAME = tenants
e2e-tenants: stack-tools ## run the commands of docs/tenants.md and docs/host-administrators.md as their readers on a real API server (LOGS)
	@cargo build --quiet --locked --bin tenants --bin sim-ironic --bin capm3
	@kubectl=$$($(STACK) tool kubectl) && $(STACK) down >/dev/null; trap '$(STACK) down' EXIT; $(STACK) up --only-api --collector && \
	  $(STACK) exec $(CARGO_BIN)/tenants --kubeconfig $(CACHE)/stack/state/$(STACK_NAME)/admin.kubeconfig \
	    --audit $(CACHE)/stack/state/$(STACK_NAME)/log/audit.log --manager $(CARGO_BIN)/capm3 --kubectl "$$kubectl" \
	    --home "$(or $(LOGS),$(CACHE)/stack/state/$(STACK_NAME))"

# --- scale --------------------------------------------------------------------------------------------------------

# HOSTS: numbers of hosts, one run each. SPEED: how many times faster than real ones the machines are. SLOTS: hosts on the provisioning
# network at once; 0 for all. IDLE, AWAY: seconds without changes, and without Ironic. RESULT: the file for the figures. LOGS: folder
# that keeps the logs, in scale-run. MANAGER: another program than that of PROFILE=dist. LOG_LEVEL: of the manager.
IDLE ?= 600
AWAY ?= 300
SLOTS ?= 0
RESULT ?= $(or $(CARGO_TARGET_DIR),target)/scale.json
LOGS ?=
LOG_LEVEL ?= 0
MANAGER ?= $(PROGRAM)
SCALE_STATE = $(CACHE)/stack/state/$(STACK_NAME)
SCALE = $(STACK) down >/dev/null; trap '$(STACK) down' EXIT; $(STACK) up --only-api && \
  $(STACK) exec $(CARGO_BIN)/scale measure --hosts $(or $(HOSTS),$(SCALE_HOSTS)) --kubeconfig $(SCALE_STATE)/admin.kubeconfig \
    --audit $(SCALE_STATE)/log/audit.log --home "$(or $(LOGS),$(SCALE_STATE))" --manager $(MANAGER) \
    $(if $(filter file,$(origin MANAGER)),$(if $(filter dist,$(PROFILE)),--optimised)) --speed $(SPEED) --slots $(SLOTS) --log-level $(LOG_LEVEL)
.PHONY: scale scale-small scale-tools
scale-tools: stack-tools $(if $(filter file,$(origin MANAGER)),program)
	@cargo build --quiet --locked --bin scale --bin sim-ironic
scale: STACK_NAME = scale
scale: SCALE_HOSTS = 1000
scale: scale-tools ## measure HOSTS=1000 hosts on a real API server: requests, processor, memory, reaction (HOSTS_ONLY=1, SPEED, IDLE, AWAY, RESULT)
	@test -n "$(HOSTS_ONLY)" || { echo "set HOSTS_ONLY=1: machines of Cluster API are not measured yet" >&2; exit 1; }
	@$(SCALE) --idle $(IDLE) --away $(AWAY) --result $(RESULT)
scale-small: STACK_NAME = scale-small
scale-small: PROFILE = dev
scale-small: SCALE_HOSTS = 25 50
scale-small: scale-tools ## require the committed counts and their growth with 25 and 50 hosts on a real API server, not optimised
	@$(SCALE) --idle 10 --small

# --- release ----------------------------------------------------------------------------------------------------

# IMAGE: the image in the manifests. RELEASE: the output folder.
IMAGE ?= localhost/metal3/capm3:dev
RELEASE ?= $(or $(CARGO_TARGET_DIR),target)/manifests
# PROGRAM: the content of the image, one static file. PROFILE=dev skips optimisation, which takes longest.
ARCH ?= amd64
PROFILE ?= dist
TRIPLE = $(if $(filter arm64,$(ARCH)),aarch64,x86_64)-unknown-linux-gnu
PROGRAM = $(or $(CARGO_TARGET_DIR),target)/$(TRIPLE)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/capm3
.PHONY: release program
program: tools ## build the program of the image, static (ARCH=amd64, PROFILE=dist)
	@$(XTASK) program $(ARCH) --profile $(PROFILE)

# IMAGES: folder of the layout. ARCHS: architectures. SOURCE: URL of the source, for the annotations.
IMAGES ?= $(or $(CARGO_TARGET_DIR),target)/images
ARCHS ?= amd64,arm64
SOURCE ?=
IMAGE_OPTIONS = $(IMAGES) --architectures $(ARCHS) --profile $(PROFILE) --source "$(SOURCE)"
.PHONY: images images-check image push
images: tools ## write the container images as an OCI image layout, without a container engine (ARCHS, IMAGES, SOURCE)
	@$(XTASK) images $(IMAGE_OPTIONS)
images-check: tools ## build the images in two folders, compare them, let skopeo and a registry read them (ARCHS, ONCE=1)
	@$(XTASK) images-check $(IMAGE_OPTIONS) $(if $(ONCE),--once)
image: tools ## print the image that `make push` writes to REGISTRY=host/name, with its digest, for `make release`
	@$(XTASK) push $(IMAGES) --registry "$(REGISTRY)" --only-name
push: tools ## copy the images to REGISTRY=host/name, and print the image
	@$(XTASK) push $(IMAGES) --registry "$(REGISTRY)"

# CHARTS: the output folder. The charts are a part of the release.
CHARTS ?= $(RELEASE)/charts
BUNDLE ?= $(RELEASE:/=).tar
bundle: tools ## write the release in RELEASE and the images in IMAGES into one archive, BUNDLE, for machines that reach no other registry
	@$(XTASK) bundle "$(BUNDLE)" --release "$(RELEASE)" --images "$(IMAGES)"
push-charts: tools ## copy the charts in CHARTS next to the images in REGISTRY=host/path/name: oci://host/path/charts/CHART
	@$(XTASK) push-charts "$(CHARTS)" --registry "$(REGISTRY)"
.PHONY: bundle push-charts chart chart-check kustomize-check
chart: tools ## write the Helm charts metal3-rs-crds and metal3-rs and their archives, for IMAGE, into CHARTS
	@$(XTASK) chart "$(CHARTS)" --image "$(IMAGE)"
chart-check: stack-tools chart ## lint, render and pull the charts with the real Helm, and compare with the components
	@helm=$$($(STACK) tool helm) && $(XTASK) chart-check "$(CHARTS)" --image "$(IMAGE)" --helm "$$helm"

.PHONY: chart-server
chart-server: STACK_NAME = charts
chart-server: stack-tools chart ## have a real API server read each form of the charts in a dry run
	@helm=$$($(STACK) tool helm) && kubectl=$$($(STACK) tool kubectl) && manager=$$($(STACK) tool cert-manager) && \
	  trap '$(STACK) down' EXIT && $(STACK) up --only-api && \
	  $(STACK) exec $(CARGO_BIN)/xtask chart-server "$(CHARTS)" --helm "$$helm" --kubectl "$$kubectl" \
	    --kubeconfig $(CACHE)/stack/state/$(STACK_NAME)/admin.kubeconfig --cert-manager "$$(dirname "$$manager")/crds.yaml"

kustomize-check: stack-tools ## render manifests/default and its overlays with kubectl, and compare with the components
	@kubectl=$$($(STACK) tool kubectl) && $(XTASK) kustomize-check --kubectl "$$kubectl"

# ALERTS: folder of the tests. DAYS: days of the simulated world without faults.
ALERTS ?= $(or $(CARGO_TARGET_DIR),target)/alerts
DAYS ?= 24
.PHONY: alerts-check
alerts-check: rust ## raise each alert by faults of the simulated world, and none in DAYS=24 days without; with promtool
	@rm -f "$(ALERTS)"/*.yaml
	@$(SCENARIOS) alerts "$(ALERTS)" --days $(DAYS)
	@$(XTASK) alerts-check "$(ALERTS)"
.PHONY: dashboards-check
dashboards-check: ## validate the dashboards against Grafana's schema, with Go
	@cd e2e/grafana && GOFLAGS=-mod=readonly go run . $(abspath $(wildcard manifests/dashboards/*.json))

# PLUGIN_URL: where the archives will be downloaded from, as a folder.
.PHONY: plugin plugin-check plugin-size plugin-outputs plugin-outputs-real
plugin-outputs: rust ## run kubectl metal3 in the sandbox, and write what it prints into docs/kubectl-metal3-outputs.md
	@$(SCENARIOS) outputs --write
plugin-outputs-real: rust ## copy what it printed in the last `make e2e-smoke` or `make e2e` from REPORT into that page
	@$(SCENARIOS) outputs --real "$(REPORT)"
plugin-size: rust ## build the program of a release with and without kubectl metal3 and the console, and print the sizes
	@$(XTASK) plugin-size
plugin: tools ## write archives of kubectl-metal3 with the programs in IMAGES, and metal3.yaml for Krew, into RELEASE (PLUGIN_URL, SOURCE)
	@$(XTASK) plugin "$(RELEASE)" --images "$(IMAGES)" --url "$(PLUGIN_URL)" --source "$(SOURCE)"
plugin-check: IMAGES = $(CHECKED)/images
plugin-check: RELEASE = $(CHECKED)/plugin
plugin-check: PLUGIN_URL = https://archives.example/metal3
plugin-check: stack-tools images plugin ## have the real Krew read metal3.yaml, and install the archive of this machine
	@krew=$$($(STACK) tool krew) && validator=$$($(STACK) tool validate-krew-manifest) && \
	  $(XTASK) plugin-check "$(RELEASE)" --krew "$$krew" --validator "$$validator"
# Folder of checks that write a release, next to that of the user.
CHECKED = $(or $(CARGO_TARGET_DIR),target)/checked

.PHONY: sbom sums
sbom: tools ## write the packages of the programs in IMAGES as a CycloneDX document into RELEASE
	@mkdir -p "$(RELEASE)" && $(XTASK) sbom "$(RELEASE)/sbom.cdx.json" --images "$(IMAGES)"
sums: tools ## write SHA256SUMS of all files in RELEASE, for `sha256sum --check SHA256SUMS`
	@$(XTASK) sums "$(RELEASE)"

# RELEASE_TAG: the tag of a release, whose patch number is that of the version. For continuous integration.
RELEASE_TAG ?=
ifneq ($(RELEASE_TAG),)
space := $(subst ,, )
export CAPM3_PATCH := $(subst $(space),.,$(wordlist 3,9,$(subst ., ,$(RELEASE_TAG))))
ifeq ($(CAPM3_PATCH),)
$(error RELEASE_TAG=$(RELEASE_TAG) is no tag such as v1.15.0)
endif
endif
# MAIN: the branch whose commits may be released.
MAIN ?= origin/main
.PHONY: release-commit release-packages release-files registry-login
release-commit: ## require that the commit is one of the branch MAIN=origin/main
	@git merge-base --is-ancestor HEAD "$(MAIN)" || \
	  { echo "the commit is not on $(MAIN): merge it, and set the tag on a commit of that branch" >&2; exit 1; }
release-packages: ## install, as root, the Debian packages with which a release is built, checked and pushed
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross skopeo umoci docker-registry qemu-user-static
release-files: tools ## write manifests, charts and archives for the image in IMAGES, under its name in REGISTRY, into RELEASE
	@image=$$($(XTASK) push $(IMAGES) --registry "$(REGISTRY)" --only-name) && make release chart plugin IMAGE="$$image"
# cosign, and what builds it, are built without the login in the environment. skopeo reads the same login.
registry-login: ## log in to the host of REGISTRY with LOGIN and PASSWORD of the environment
	@cosign=$$(env --unset=LOGIN --unset=PASSWORD make --silent cosign) && \
	  "$$cosign" login --username "$$LOGIN" --password-stdin "$(firstword $(subst /, ,$(REGISTRY)))" <<<"$$PASSWORD"

# KEY: key of cosign, whose password is in COSIGN_PASSWORD. BUILDER: URL that names who builds. VERSION: the release that is wanted.
KEY ?= cosign.key
PUBLIC_KEY ?= cosign.pub
BUILDER ?=
SIGNED = "$(RELEASE)" --registry "$(REGISTRY)" --cosign "$$cosign"
.PHONY: public-key
public-key: ## require the key with which a release is verified
	@test -f "$(PUBLIC_KEY)" || { echo "commit $(PUBLIC_KEY) (docs/releasing.md, Signatures)" >&2; exit 1; }
.PHONY: release-check cosign sign verify-release trust-check
release-check: tools ## name what keeps RELEASE and IMAGES from being released: changes, versions, images, definitions without a note (VERSION)
	@$(XTASK) release-check "$(RELEASE)" --images "$(IMAGES)" --wanted "$(VERSION)"
cosign: stack-tools ## print the path of cosign, which is built if it is missing
	@$(STACK) tool cosign
sign: stack-tools release-check sbom ## write provenance and SHA256SUMS into RELEASE, sign them and the images (KEY, SOURCE, BUILDER, REGISTRY)
	@cosign=$$($(STACK) tool cosign) && $(XTASK) sign $(SIGNED) --images "$(IMAGES)" --key "$(KEY)" \
	  --source "$(SOURCE)" --builder "$(BUILDER)"
verify-release: stack-tools ## verify the files in RELEASE and the image that they install (PUBLIC_KEY, VERSION; REGISTRY of a mirror)
	@cosign=$$($(STACK) tool cosign) && $(XTASK) verify-release $(SIGNED) --key "$(PUBLIC_KEY)" --wanted "$(VERSION)"
trust-check: IMAGES = $(CHECKED)/images
# BUILT=1: the images that `make test-e2e-release` or this command wrote before, as they are.
trust-check: stack-tools $(if $(BUILT),,images) ## sign a release of its own, verify it, and require that changes are rejected (BUILT=1)
	@cosign=$$($(STACK) tool cosign) && $(XTASK) trust-check --images "$(IMAGES)" --cosign "$$cosign"
.PHONY: workflows-check
workflows-check: stack-tools ## read the workflows with actionlint
	@$$($(STACK) tool actionlint) .github/workflows/*.yml

release: tools ## write the files to install, for IMAGE, into RELEASE
	@$(XTASK) release "$(RELEASE)" --image "$(IMAGE)"
