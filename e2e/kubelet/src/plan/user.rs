//! User and groups of a container.

use k8s_openapi::api::core::v1::{Container, PodSpec};

/// User and group of distroless images, whose manifests have `runAsNonRoot` without a number.
const NONROOT: i64 = 65532;

/// The users of the kubelet's user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// Root of the machine: each number is a different user.
    Many,
    /// The namespace of an ordinary user: a single user, which can be mapped to any number.
    One,
}

impl Users {
    /// Reads `/proc/self/uid_map`: rows of first, mapped to, count.
    pub(crate) fn of_map(map: &str) -> Self {
        let count: u64 = map
            .lines()
            .filter_map(|row| row.split_whitespace().nth(2)?.parse::<u64>().ok())
            .sum();
        if count > 1 { Self::Many } else { Self::One }
    }
}

/// The ids of a container's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user: i64,
    pub(crate) group: i64,
    pub(crate) others: Vec<i64>,
}

/// The container's security context overrides the Pod's, and both those of the image.
pub(crate) fn identity(spec: &PodSpec, container: &Container, of_image: Option<(i64, i64)>) -> Identity {
    let of_pod = spec.security_context.as_ref();
    let own = container.security_context.as_ref();
    let nonroot = own
        .and_then(|own| own.run_as_non_root)
        .or(of_pod.and_then(|pod| pod.run_as_non_root));
    let (default, its_group) = of_image.unwrap_or(if nonroot == Some(true) {
        (NONROOT, NONROOT)
    } else {
        (0, 0)
    });
    let user = own
        .and_then(|own| own.run_as_user)
        .or(of_pod.and_then(|pod| pod.run_as_user))
        .unwrap_or(default);
    let group = own
        .and_then(|own| own.run_as_group)
        .or(of_pod.and_then(|pod| pod.run_as_group));
    let mut others: Vec<i64> = of_pod
        .and_then(|pod| pod.supplemental_groups.clone())
        .unwrap_or_default();
    others.extend(of_pod.and_then(|pod| pod.fs_group));
    Identity {
        user,
        group: group.unwrap_or(match user {
            user if user == default => its_group,
            NONROOT => NONROOT,
            _ => 0,
        }),
        others,
    }
}

/// Why a container cannot run with its security context.
pub(crate) fn refusal(
    spec: &PodSpec,
    container: &Container,
    users: Users,
    of_image: Option<(i64, i64)>,
) -> Option<String> {
    let wanted = identity(spec, container, of_image);
    let of_pod = spec.security_context.as_ref().and_then(|pod| pod.run_as_non_root);
    let nonroot = container
        .security_context
        .as_ref()
        .and_then(|own| own.run_as_non_root)
        .or(of_pod);
    if nonroot == Some(true) && wanted.user == 0 {
        return Some(format!(
            "container {:?} has runAsNonRoot and would run as root",
            container.name
        ));
    }
    (users == Users::One && !wanted.others.is_empty()).then(|| {
        "fsGroup and supplementalGroups require a kubelet that runs as root: an ordinary user has one group".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::{container, pod};
    use super::*;

    fn pod_and_container(of_pod: &Value, own: &Value) -> (PodSpec, Container) {
        let spec = pod(json!({"containers": [], "securityContext": of_pod})).spec.unwrap();
        (spec, container(json!({"name": "a", "securityContext": own})))
    }

    #[test]
    fn container_overrides_the_pod() {
        let table = [
            (json!({}), json!({}), (0, 0)),
            (json!({"runAsUser": 7, "runAsGroup": 8}), json!({}), (7, 8)),
            (
                json!({"runAsUser": 7}),
                json!({"runAsUser": 9, "runAsGroup": 9}),
                (9, 9),
            ),
            (json!({"runAsNonRoot": true}), json!({}), (65532, 65532)),
            (json!({"runAsNonRoot": true}), json!({"runAsNonRoot": false}), (0, 0)),
            (json!({"runAsUser": 7}), json!({}), (7, 0)),
        ];
        for (of_pod, own, expected) in table {
            let (spec, container) = pod_and_container(&of_pod, &own);
            let found = identity(&spec, &container, None);
            assert_eq!((found.user, found.group), expected, "{of_pod} {own}");
        }
    }

    #[test]
    fn image_decides_where_the_pod_says_nothing() {
        for (of_pod, expected) in [
            (json!({}), (5, 6)),
            (json!({"runAsNonRoot": true}), (5, 6)),
            (json!({"runAsUser": 7}), (7, 0)),
            (json!({"runAsGroup": 8}), (5, 8)),
        ] {
            let (spec, container) = pod_and_container(&of_pod, &json!({}));
            let found = identity(&spec, &container, Some((5, 6)));
            assert_eq!((found.user, found.group), expected, "{of_pod}");
        }
        let (spec, container) = pod_and_container(&json!({"runAsNonRoot": true}), &json!({}));
        for (user, refused) in [(0, true), (5, false)] {
            assert_eq!(
                refusal(&spec, &container, Users::Many, Some((user, 6))).is_some(),
                refused,
                "{user}"
            );
        }
    }

    #[test]
    fn impossible_identities_are_refused() {
        let (spec, container) = pod_and_container(&json!({"runAsNonRoot": true, "runAsUser": 0}), &json!({}));
        assert!(
            refusal(&spec, &container, Users::Many, None).is_some(),
            "root is not non-root"
        );
        let (spec, container) = pod_and_container(&json!({"fsGroup": 5}), &json!({}));
        assert!(refusal(&spec, &container, Users::One, None).is_some(), "one group only");
        assert_eq!(refusal(&spec, &container, Users::Many, None), None);
        assert_eq!(identity(&spec, &container, None).others, [5]);
        let (spec, container) = pod_and_container(&json!({"runAsUser": 65532}), &json!({}));
        assert_eq!(
            refusal(&spec, &container, Users::One, None),
            None,
            "one user may have any number"
        );
    }

    #[test]
    fn uid_map_determines_the_number_of_users() {
        assert_eq!(Users::of_map("         0          0 4294967295\n"), Users::Many);
        assert_eq!(Users::of_map("         0       1000          1\n"), Users::One);
    }
}
