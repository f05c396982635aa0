//! Plain commands that Kubernetes may refuse. Pure.

use anyhow::ensure;

use super::products::{HOSTS, INFRASTRUCTURE, IPAM};
use super::session::Typed;

/// A plain command, and a part of the one that works where Kubernetes refuses it.
pub(super) struct Plain {
    pub(super) is_forced: bool,
    pub(super) files: &'static [&'static str],
    /// A part of the answer.
    reason: &'static str,
    /// The object of the finding of preflight that names the command which works, or its beginning.
    pub(super) object: &'static str,
    pub(super) works: &'static str,
}

/// Whether a plain command is refused, and whether preflight names the one that works instead.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) plain: String,
    pub(super) is_refused: bool,
    pub(super) is_named: bool,
}

pub(super) const PLAIN: [Plain; 3] = [
    Plain {
        is_forced: false,
        files: &[IPAM, INFRASTRUCTURE],
        reason: "conflict",
        object: "CustomResourceDefinitions",
        works: "--force-conflicts",
    },
    Plain {
        is_forced: true,
        files: &[INFRASTRUCTURE],
        reason: "\"metal3clustertemplates.infrastructure.cluster.x-k8s.io\" is invalid",
        object: "CustomResourceDefinition metal3clustertemplates.",
        works: "kubectl patch crd",
    },
    Plain {
        is_forced: true,
        files: &[HOSTS],
        reason: "\"baremetal-operator-validating-webhook-configuration\" is invalid",
        object: "ValidatingWebhookConfiguration baremetal-operator-",
        works: "kubectl delete --ignore-not-found validatingwebhookconfiguration",
    },
];

impl Plain {
    pub(super) fn command(&self) -> String {
        let forced = if self.is_forced { " --force-conflicts" } else { "" };
        format!("kubectl apply --server-side{forced} -f {}", self.files.join(","))
    }

    /// Whether the command was refused for its own reason, of the several that a file may meet. Another one is an error.
    pub(super) fn is_refused(&self, file: &str, typed: &Typed) -> anyhow::Result<bool> {
        let mut known = PLAIN.iter().filter(|one| one.files.contains(&file));
        ensure!(
            typed.succeeded || known.any(|one| typed.printed.contains(one.reason)),
            "{file} is refused for a reason that the suite does not know:\n{}",
            typed.printed
        );
        Ok(!typed.succeeded && typed.printed.contains(self.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_an_unknown_reason_is_an_error() {
        const DEFINITION: &str =
            "The CustomResourceDefinition \"metal3clustertemplates.infrastructure.cluster.x-k8s.io\" is invalid:";
        const WEBHOOKS: &str =
            "The ValidatingWebhookConfiguration \"baremetal-operator-validating-webhook-configuration\" is invalid:";
        let [conflicts, definition, webhooks] = &PLAIN;
        let table = [
            (conflicts, IPAM, true, "a conflict of the past", Some(false)),
            (conflicts, IPAM, false, "1 conflict: with clusterctl", Some(true)),
            (conflicts, INFRASTRUCTURE, false, DEFINITION, Some(false)),
            (definition, INFRASTRUCTURE, false, DEFINITION, Some(true)),
            (conflicts, IPAM, false, DEFINITION, None),
            (
                definition,
                INFRASTRUCTURE,
                false,
                "The Deployment \"a\" is invalid:",
                None,
            ),
            (webhooks, HOSTS, false, WEBHOOKS, Some(true)),
            (webhooks, HOSTS, false, DEFINITION, None),
            (webhooks, HOSTS, false, "1 conflict: with clusterctl", None),
            (webhooks, HOSTS, false, "connection refused", None),
        ];
        for (plain, file, succeeded, printed, expected) in table {
            let typed = Typed {
                succeeded,
                printed: printed.to_owned(),
            };
            let is_refused = plain.is_refused(file, &typed).ok();
            assert_eq!(is_refused, expected, "{file} {succeeded}: {printed}");
        }
    }
}
