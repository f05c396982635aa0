//! The variables of the environment that count for hosts, for the documentation. A test holds the list against what is
//! read.

/// A variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What counts where it is not given.
    pub default: &'static str,
    /// What it does.
    pub says: &'static str,
}

const fn variable(name: &'static str, default: &'static str, says: &'static str) -> Variable {
    Variable { name, default, says }
}

const NO_BUILDER: &str = "Ignored, and the log says so: images for the agent of each host are not built yet";
const NO_LEASE: &str = "Ignored, and the log says so: the flags `--leader-elect-...` time the lease";

/// All of them, by name.
pub const VARIABLES: &[Variable] = &[
    variable(
        "BMO_CONCURRENCY",
        "8",
        "Hosts that are worked on at once, where `--controller-concurrency` does not say",
    ),
    variable("DEPLOY_ISO_BY_ARCH", "", NO_BUILDER),
    variable("DEPLOY_ISO_URL", "", "The agent as an ISO, for machines that boot one"),
    variable("DEPLOY_KERNEL_BY_ARCH", "", NO_BUILDER),
    variable(
        "DEPLOY_KERNEL_URL",
        "",
        "The agent's kernel; not without its ramdisk. Without either Ironic's own counts",
    ),
    variable("DEPLOY_RAMDISK_BY_ARCH", "", NO_BUILDER),
    variable("DEPLOY_RAMDISK_URL", "", "The agent's ramdisk; not without its kernel"),
    variable(
        "DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE",
        "Default",
        "`Default`, `Always` or `Never`: whether the boot order of machines that boot from their disk is kept",
    ),
    variable(
        "IRONIC_CACERT_FILE",
        "/opt/metal3/certs/ca/tls.crt",
        "The authority of Ironic's certificate; read again when it changes. What is named must be there",
    ),
    variable(
        "IRONIC_CLIENT_CACHE_TTL",
        "",
        "Ignored, and the log says so: answers are not kept by the clock",
    ),
    variable(
        "IRONIC_CLIENT_CERT_FILE",
        "/opt/metal3/certs/client/tls.crt",
        "A certificate of our own",
    ),
    variable(
        "IRONIC_CLIENT_PRIVATE_KEY_FILE",
        "/opt/metal3/certs/client/tls.key",
        "Its key",
    ),
    variable("IRONIC_CLIENT_TIMEOUT", "30s", "How long one request may take"),
    variable("IRONIC_ENDPOINT", "", "Where Ironic is: `https://host:6385`. Required"),
    variable(
        "IRONIC_EXTERNAL_URL_V6",
        "",
        "Where machines whose BMC has an IPv6 address reach Ironic's images",
    ),
    variable(
        "IRONIC_INSECURE",
        "false",
        "Take whoever answers for Ironic. For laboratories",
    ),
    variable("IRONIC_NAME", "", "Refused: Ironic resources are not read yet"),
    variable(
        "IRONIC_NETWORKING_ENABLED",
        "false",
        "Refused: switches are not configured yet",
    ),
    variable(
        "IRONIC_SKIP_CLIENT_SAN_VERIFY",
        "false",
        "Refused: certificates are checked whole or, with `IRONIC_INSECURE`, not at all",
    ),
    variable("LEASE_DURATION_SECONDS", "", NO_LEASE),
    variable(
        "LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE",
        "Default",
        "The same as for disks, for machines that boot a live ISO",
    ),
    variable(
        "METAL3_AUTH_ROOT_DIR",
        "/opt/metal3/auth",
        "In its folder `ironic` the files `username` and `password` are the login; read again when they change",
    ),
    variable(
        "PROVISIONING_LIMIT",
        "20",
        "How many hosts may load the provisioning network at once",
    ),
    variable(
        "PROVISIONING_NETWORK_DISABLED",
        "false",
        "There is no network from which machines could boot the agent: hosts that need one are refused",
    ),
    variable("RENEW_DEADLINE_SECONDS", "", NO_LEASE),
    variable("RETRY_PERIOD_SECONDS", "", NO_LEASE),
    variable(
        "WATCH_NAMESPACE",
        "",
        "The only namespace whose hosts are looked at, where `--namespace` does not say; empty for all",
    ),
];
