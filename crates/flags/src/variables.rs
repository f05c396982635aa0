//! Environment variables of the host controllers, for the documentation. A test compares the list with the variables
//! that the program reads.

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Description.
    pub description: &'static str,
}

const fn variable(name: &'static str, default: &'static str, description: &'static str) -> Variable {
    Variable {
        name,
        default,
        description,
    }
}

const BY_ARCHITECTURE: &str = "Those of machines of other architectures, as `ARCHITECTURE:URL,ARCHITECTURE:URL`; an architecture \
                               without any has those of `DEPLOY_*_URL`. A kernel requires its ramdisk";
const OF_ARCHITECTURE: &str = "That of machines of this architecture; takes precedence over `DEPLOY_*_BY_ARCH`";

/// All variables, sorted by name.
pub const VARIABLES: &[Variable] = &[
    variable(
        "BMO_CONCURRENCY",
        "8",
        "Concurrent reconciles of hosts, unless `--controller-concurrency` is set",
    ),
    variable("DEPLOY_ISO_BY_ARCH", "", BY_ARCHITECTURE),
    variable(
        "DEPLOY_ISO_URL",
        "",
        "Agent image as an ISO, for machines that boot one",
    ),
    variable("DEPLOY_ISO_URL_AARCH64", "", OF_ARCHITECTURE),
    variable("DEPLOY_ISO_URL_X86_64", "", OF_ARCHITECTURE),
    variable("DEPLOY_KERNEL_BY_ARCH", "", BY_ARCHITECTURE),
    variable(
        "DEPLOY_KERNEL_URL",
        "",
        "Kernel of the agent; requires its ramdisk. Without both, Ironic's default applies",
    ),
    variable("DEPLOY_KERNEL_URL_AARCH64", "", OF_ARCHITECTURE),
    variable("DEPLOY_KERNEL_URL_X86_64", "", OF_ARCHITECTURE),
    variable("DEPLOY_RAMDISK_BY_ARCH", "", BY_ARCHITECTURE),
    variable("DEPLOY_RAMDISK_URL", "", "Ramdisk of the agent; requires its kernel"),
    variable("DEPLOY_RAMDISK_URL_AARCH64", "", OF_ARCHITECTURE),
    variable("DEPLOY_RAMDISK_URL_X86_64", "", OF_ARCHITECTURE),
    variable(
        "DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE",
        "Default",
        "`Default`, `Always` or `Never`: whether the boot device is set persistently on machines that boot from their \
         disk",
    ),
    variable(
        "IRONIC_CACERT_FILE",
        "/opt/metal3/certs/ca/tls.crt",
        "CA of Ironic's certificate; reloaded on change. A file that is set must exist",
    ),
    variable(
        "IRONIC_CLIENT_CACHE_TTL",
        "",
        "Ignored with a warning in the log: responses are not cached by time",
    ),
    variable(
        "IRONIC_CLIENT_CERT_FILE",
        "/opt/metal3/certs/client/tls.crt",
        "Client certificate",
    ),
    variable(
        "IRONIC_CLIENT_PRIVATE_KEY_FILE",
        "/opt/metal3/certs/client/tls.key",
        "Its key",
    ),
    variable("IRONIC_CLIENT_TIMEOUT", "30s", "Timeout of one request"),
    variable(
        "IRONIC_ENDPOINT",
        "",
        "URL of Ironic: `https://host:6385`. Required without `IRONIC_NAME` and `IRONIC_ENDPOINTS`. Its name is `ironic`",
    ),
    variable(
        "IRONIC_ENDPOINTS",
        "",
        "Further Ironics: `name=https://host:6385,name=https://host:6385`. Hosts name one by the label `baremetalhost.metal3.io/ironic`; the first of all serves the others",
    ),
    variable(
        "IRONIC_EXTERNAL_URL_V6",
        "",
        "URL of Ironic's images for machines whose BMC has an IPv6 address",
    ),
    variable(
        "IRONIC_INSECURE",
        "false",
        "Skip the verification of Ironic's certificate. For test environments",
    ),
    variable(
        "IRONIC_NAME",
        "",
        "Name of the `Ironic` resource of ironic-standalone-operator that says where Ironic is, with its login and CA; followed live. Several, separated by commas, each `name` or `namespace/name`",
    ),
    variable(
        "IRONIC_NAMESPACE",
        "",
        "Namespace of that resource; by default `POD_NAMESPACE`, then `WATCH_NAMESPACE`",
    ),
    variable(
        "IRONIC_NETWORKING_ENABLED",
        "false",
        "Write BareMetalSwitches to the Secrets that Ironic's networking service reads. Experimental; requires the three \
         `IRONIC_SWITCH_*`",
    ),
    variable(
        "IRONIC_SKIP_CLIENT_SAN_VERIFY",
        "false",
        "Rejected: certificates are verified completely or, with `IRONIC_INSECURE`, not at all",
    ),
    variable(
        "IRONIC_SWITCH_CONFIGS_SECRET",
        "",
        "Secret with the file of the switches, in the namespace of each switch. It must exist",
    ),
    variable(
        "IRONIC_SWITCH_CREDENTIALS_PATH",
        "",
        "Folder in which Ironic has the files of `IRONIC_SWITCH_CREDENTIALS_SECRET`: an absolute path without white space and `%`",
    ),
    variable(
        "IRONIC_SWITCH_CREDENTIALS_SECRET",
        "",
        "Secret with the private keys of the switches, in the namespace of each switch. It must exist",
    ),
    variable(
        "LEASE_DURATION_SECONDS",
        "",
        "As `--lease-duration-seconds`, unless a flag sets the lease",
    ),
    variable(
        "LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE",
        "Default",
        "As above, for machines that boot a live ISO",
    ),
    variable(
        "METAL3_AUTH_ROOT_DIR",
        "/opt/metal3/auth",
        "Its folder `ironic` contains the credentials in the files `username` and `password`; reloaded on change. For an item of `IRONIC_ENDPOINTS` the folder of its name, with `ca.crt`, `tls.crt` and `tls.key` for other certificates than the common ones",
    ),
    variable(
        "PROVISIONING_LIMIT",
        "20",
        "Maximum number of hosts that use the provisioning network at once, for each Ironic",
    ),
    variable(
        "PROVISIONING_NETWORK_DISABLED",
        "false",
        "There is no provisioning network: hosts that need one are rejected",
    ),
    variable(
        "RENEW_DEADLINE_SECONDS",
        "",
        "As `--renew-deadline-seconds`, unless a flag sets it",
    ),
    variable(
        "RETRY_PERIOD_SECONDS",
        "",
        "As `--retry-period-seconds`, unless a flag sets it",
    ),
    variable(
        "WATCH_NAMESPACE",
        "",
        "Namespace of the watched hosts, unless `--namespace` is set; empty for all",
    ),
];
