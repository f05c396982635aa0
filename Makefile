# The door: every command of the project is a target here; Rust (`xtask`) or a room's own script does the work.
# Caches live in the user's home, outside the checkout, so that a fresh clone starts warm.
SHELL := /bin/bash
CACHE ?= $(HOME)/.cache/metal3-rs
export CACHE
XTASK := cargo run --quiet --locked -p xtask --

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

# The real Ironic. INSTANCE, PORT, ENTRY=fast|stock, DB=sqlite|mariadb and EXTRA_CONF are e2e/ironic/ironic.sh's.
export INSTANCE PORT ENTRY DB EXTRA_CONF
.PHONY: ironic ironic-down ironic-status
ironic: ## start the real Ironic on this machine
	@e2e/ironic/ironic.sh up
ironic-down: ## stop it; its logs stay
	@e2e/ironic/ironic.sh down
ironic-status: ## where it listens, its login file, its memory
	@e2e/ironic/ironic.sh status

# Lives on that Ironic. LEVEL, NODES; BMC=sushy|labhosts at level 2.
IRONIC_LIFE = cargo build --quiet --locked -p metal3-labhosts -p metal3-ironic-life && \
	$${CARGO_TARGET_DIR:-target}/debug/ironic-life
LEVEL ?= 3
NODES ?= 1
BMC ?= sushy
.PHONY: ironic-life ironic-faults
ironic-life: ironic ## take NODES nodes through their whole life at LEVEL 1, 2 or 3
	@$(IRONIC_LIFE) --level $(LEVEL) --nodes $(NODES) --bmc $(BMC)
ironic-faults: ## make docs/ironic-faults.md anew from the real Ironic
	@INSTANCE=faults EXTRA_CONF=e2e/ironic/impatient.conf e2e/ironic/ironic.sh up
	@INSTANCE=faults; export INSTANCE; $(IRONIC_LIFE) --faults docs/ironic-faults.md --port 27543; \
	  ended=$$?; e2e/ironic/ironic.sh down; exit $$ended
