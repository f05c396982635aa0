# Appended to the configuration of a metal3-dev-env.
# Hosts come after our manager: nobody else should have enrolled them.
export SKIP_APPLY_BMH="true"
