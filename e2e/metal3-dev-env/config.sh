# Appended to the configuration of a metal3-dev-env.
# Hosts are applied after this provider is installed: upstream must not enrol them.
export SKIP_APPLY_BMH="true"
