//! The restricted level of the Pod Security Standards, as checks of a Pod with the names of the standard.
//!
//! The API server enforces it; these checks report the violated control without one.

use serde_json::Value;

/// All containers.
fn containers(pod: &Value) -> Vec<&Value> {
    ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|kind| pod[*kind].as_array().into_iter().flatten())
        .collect()
}

/// A field of the security contexts of the Pod and its containers, where set.
fn values<'a>(pod: &'a Value, member: &str) -> Vec<&'a Value> {
    let own = containers(pod)
        .into_iter()
        .map(|container| &container["securityContext"]);
    let all = std::iter::once(&pod["securityContext"]).chain(own);
    all.filter_map(|context| context.pointer(member)).collect()
}

/// Whether every container has the field, directly or from the Pod.
fn all_have(pod: &Value, member: &str, good: fn(&Value) -> bool) -> bool {
    let of_pod = pod["securityContext"].pointer(member);
    containers(pod).into_iter().all(|container| {
        let own = container["securityContext"].pointer(member).or(of_pod);
        own.is_some_and(good)
    })
}

fn is_one_of(value: &Value, known: &[&str]) -> bool {
    value.as_str().is_some_and(|text| known.contains(&text))
}

const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];
const VOLUMES: [&str; 8] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
];
const SELINUX_TYPES: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

/// A control, and its check.
pub(super) type Control = (&'static str, fn(&Value) -> bool);

/// Every control of the level, those of the baseline first.
pub(super) const CONTROLS: [Control; 16] = [
    ("HostProcess", |pod| {
        values(pod, "/windowsOptions/hostProcess")
            .iter()
            .all(|value| **value != true)
    }),
    ("Host Namespaces", |pod| {
        ["hostNetwork", "hostPID", "hostIPC"]
            .iter()
            .all(|member| pod[*member] != true)
    }),
    ("Privileged Containers", |pod| {
        values(pod, "/privileged").iter().all(|value| **value != true)
    }),
    ("Host Ports", |pod| {
        let ports = containers(pod)
            .into_iter()
            .flat_map(|one| one["ports"].as_array().into_iter().flatten());
        ports
            .into_iter()
            .all(|port| port["hostPort"].as_u64().unwrap_or_default() == 0)
    }),
    ("Host Probes / Lifecycle Hooks", |pod| {
        let places = [
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle/postStart",
            "lifecycle/preStop",
        ];
        let hosts = places
            .iter()
            .flat_map(|place| ["httpGet", "tcpSocket"].map(|how| format!("/{place}/{how}/host")));
        hosts.into_iter().all(|host| {
            containers(pod)
                .into_iter()
                .all(|one| one.pointer(&host).is_none_or(|host| *host == ""))
        })
    }),
    ("AppArmor", |pod| {
        values(pod, "/appArmorProfile/type")
            .iter()
            .all(|kind| is_one_of(kind, &PROFILES))
    }),
    ("SELinux", |pod| {
        let kinds = values(pod, "/seLinuxOptions/type");
        kinds.iter().all(|kind| is_one_of(kind, &SELINUX_TYPES))
            && ["/seLinuxOptions/user", "/seLinuxOptions/role"]
                .iter()
                .all(|member| values(pod, member).iter().all(|value| **value == ""))
    }),
    ("/proc Mount Type", |pod| {
        values(pod, "/procMount")
            .iter()
            .all(|kind| is_one_of(kind, &["Default"]))
    }),
    ("Sysctls", |pod| {
        let names = pod["securityContext"]["sysctls"].as_array().into_iter().flatten();
        names.into_iter().all(|sysctl| is_one_of(&sysctl["name"], &SYSCTLS))
    }),
    ("Volume Types", |pod| {
        let volumes = pod["volumes"].as_array().into_iter().flatten();
        volumes.into_iter().filter_map(Value::as_object).all(|volume| {
            volume
                .keys()
                .all(|member| member == "name" || VOLUMES.contains(&member.as_str()))
        })
    }),
    ("Privilege Escalation", |pod| {
        let mut all = containers(pod).into_iter();
        all.all(|one| one["securityContext"]["allowPrivilegeEscalation"] == false)
    }),
    ("Running as Non-root", |pod| {
        all_have(pod, "/runAsNonRoot", |value| *value == true)
    }),
    ("Running as Non-root user", |pod| {
        values(pod, "/runAsUser").iter().all(|user| **user != 0)
    }),
    ("Seccomp", |pod| {
        all_have(pod, "/seccompProfile/type", |kind| is_one_of(kind, &PROFILES))
            && values(pod, "/seccompProfile/type")
                .iter()
                .all(|kind| is_one_of(kind, &PROFILES))
    }),
    ("Capabilities dropped", |pod| {
        let mut all = containers(pod).into_iter();
        all.all(|one| {
            let dropped = one["securityContext"]["capabilities"]["drop"].as_array();
            dropped.is_some_and(|names| names.iter().any(|name| name == "ALL"))
        })
    }),
    ("Capabilities added", |pod| {
        let added = values(pod, "/capabilities/add")
            .into_iter()
            .filter_map(Value::as_array)
            .flatten();
        added.into_iter().all(|name| is_one_of(name, &["NET_BIND_SERVICE"]))
    }),
];

/// The violated controls.
pub(super) fn violated(pod: &Value) -> Vec<&'static str> {
    CONTROLS
        .iter()
        .filter(|(_, check)| !check(pod))
        .map(|(name, _)| *name)
        .collect()
}
