//! Unsupported features of Pods, which are refused.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Volume};

use super::probe;
use super::user::{self, Users};

/// All reasons at once.
pub(crate) fn refusals(pod: &Pod, users: Users) -> Vec<String> {
    let Some(spec) = &pod.spec else {
        return vec!["a Pod without spec".to_owned()];
    };
    let mut all = pod_refusals(spec);
    all.extend(spec.volumes.iter().flatten().filter_map(volume_refusal));
    for container in &spec.containers {
        all.extend(container_refusals(container));
        all.extend(user::refusal(spec, container, users, None));
    }
    all.dedup();
    all
}

fn pod_refusals(spec: &PodSpec) -> Vec<String> {
    let table = [
        (
            spec.init_containers.as_ref().is_some_and(|list| !list.is_empty()),
            "init containers and sidecars",
        ),
        (
            spec.ephemeral_containers.as_ref().is_some_and(|list| !list.is_empty()),
            "ephemeral containers",
        ),
        (spec.host_network == Some(true), "hostNetwork"),
        (spec.host_pid == Some(true), "hostPID"),
        (spec.host_ipc == Some(true), "hostIPC"),
        (spec.share_process_namespace == Some(true), "shareProcessNamespace"),
        (spec.active_deadline_seconds.is_some(), "activeDeadlineSeconds"),
        (spec.runtime_class_name.is_some(), "runtimeClassName"),
        (
            spec.resource_claims.as_ref().is_some_and(|list| !list.is_empty()),
            "resourceClaims",
        ),
    ];
    table
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, what)| format!("{what}: not supported by this kubelet"))
        .collect()
}

fn volume_refusal(volume: &Volume) -> Option<String> {
    let known = volume.secret.is_some()
        || volume.config_map.is_some()
        || volume.empty_dir.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some();
    (!known).then(|| {
        format!(
            "volume {:?}: only secret, configMap, emptyDir, downwardAPI and projected are supported",
            volume.name
        )
    })
}

fn container_refusals(container: &Container) -> Vec<String> {
    let own = container.security_context.as_ref();
    let added = own
        .and_then(|own| own.capabilities.as_ref())
        .and_then(|capabilities| capabilities.add.as_ref());
    let mounts = || container.volume_mounts.iter().flatten();
    let table = [
        (own.and_then(|own| own.privileged) == Some(true), "privileged"),
        (added.is_some_and(|added| !added.is_empty()), "capabilities.add"),
        (container.lifecycle.is_some(), "lifecycle hooks"),
        (container.tty == Some(true), "tty"),
        (
            container.volume_devices.as_ref().is_some_and(|list| !list.is_empty()),
            "volumeDevices",
        ),
        (mounts().any(|mount| mount.sub_path_expr.is_some()), "subPathExpr"),
        (
            mounts().any(|mount| mount.mount_propagation.as_deref().is_some_and(|kind| kind != "None")),
            "mountPropagation",
        ),
    ];
    let is_set = table.into_iter().filter(|(is_set, _)| *is_set);
    let mut all: Vec<String> = is_set
        .map(|(_, what)| format!("container {:?}: {what} is not supported", container.name))
        .collect();
    let probes = [
        &container.readiness_probe,
        &container.liveness_probe,
        &container.startup_probe,
    ];
    all.extend(
        probes
            .into_iter()
            .flatten()
            .filter_map(|wanted| probe::check(wanted, container).err()),
    );
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::pod;
    use super::*;

    #[test]
    fn unsupported_features_are_refused_by_name() {
        let table = [
            (
                json!({"containers": [], "initContainers": [{"name": "i"}]}),
                "init containers",
            ),
            (json!({"containers": [], "hostNetwork": true}), "hostNetwork"),
            (
                json!({"containers": [], "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
                "volume \"v\"",
            ),
            (
                json!({"containers": [], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
                "volume \"v\"",
            ),
            (
                json!({"containers": [{"name": "a", "securityContext": {"privileged": true}}]}),
                "privileged",
            ),
            (
                json!({"containers": [{"name": "a", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}]}),
                "capabilities.add",
            ),
            (
                json!({"containers": [{"name": "a", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]}),
                "lifecycle",
            ),
            (
                json!({"containers": [{"name": "a", "livenessProbe": {"grpc": {"port": 1}}}]}),
                "probe",
            ),
            (
                json!({"containers": [{"name": "a", "securityContext": {"runAsNonRoot": true, "runAsUser": 0}}]}),
                "runAsNonRoot",
            ),
        ];
        for (spec, named) in table {
            let reasons = refusals(&pod(spec.clone()), Users::Many);
            assert!(
                matches!(reasons.as_slice(), [one] if one.contains(named)),
                "{spec}: {reasons:?}"
            );
        }
    }

    #[test]
    fn manager_of_a_provider_is_accepted() {
        let spec = json!({
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "cert", "secret": {"secretName": "webhook"}}],
            "containers": [{"name": "manager", "image": "example.org/manager:v1", "command": ["/manager"], "args": ["--leader-elect"],
                "ports": [{"name": "health", "containerPort": 9440}, {"name": "webhook-server", "containerPort": 9443}],
                "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}},
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsUser": 65532},
                "volumeMounts": [{"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs", "readOnly": true}]}],
        });
        for users in [Users::Many, Users::One] {
            assert_eq!(refusals(&pod(spec.clone()), users), Vec::<String>::new(), "{users:?}");
        }
    }
}
