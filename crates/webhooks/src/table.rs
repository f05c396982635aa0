//! Names and paths of the webhooks. They are those of the Go managers, so that installed configurations stay valid
//! during a migration.

use metal3_api::rules::{Operation, Reviewer};
use metal3_api::{infrastructure, ipam, metal3};

use crate::related_objects;

/// The webhooks of one API group, which are installed together.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// API group.
    pub group: &'static str,
    /// Prefix of the names of the installed objects.
    pub prefix: &'static str,
    /// Namespace of the Service in the manifest; an installer may change it.
    pub namespace: &'static str,
    /// Name of the provider in clusterctl, if any.
    pub provider: Option<&'static str>,
    /// Whether hooks are named for their task, as in `validation.ippool.ipam.metal3.io`.
    has_task_in_names: bool,
    /// Whether each kind has a mutating webhook, even without defaulting rows.
    mutates_all: bool,
    /// The version at which Go managers up to 1.12 have a mutating webhook for each kind.
    former_version: Option<&'static str>,
    reviewers: fn() -> Vec<Reviewer>,
}

/// `infrastructure.cluster.x-k8s.io`.
pub const INFRASTRUCTURE: Suite = Suite {
    group: infrastructure::names::GROUP,
    prefix: "capm3",
    namespace: "capm3-system",
    provider: Some("infrastructure-metal3"),
    has_task_in_names: true,
    mutates_all: false,
    former_version: Some("v1beta1"),
    reviewers: infrastructure::reviewers,
};

/// `ipam.metal3.io`. The Go manager has mutating webhooks without defaults for all three kinds; they are kept, because
/// its configuration may be installed.
pub const IPAM: Suite = Suite {
    group: ipam::names::GROUP,
    prefix: "ipam",
    namespace: "metal3-ipam-system",
    provider: Some("ipam-metal3"),
    has_task_in_names: true,
    mutates_all: true,
    former_version: None,
    reviewers: ipam::reviewers,
};

/// `metal3.io`.
pub const HOSTS: Suite = Suite {
    group: metal3::names::GROUP,
    prefix: "baremetal-operator",
    namespace: "baremetal-operator-system",
    provider: None,
    has_task_in_names: false,
    mutates_all: false,
    former_version: None,
    reviewers: metal3::reviewers,
};

/// Every suite.
pub const SUITES: [Suite; 3] = [INFRASTRUCTURE, IPAM, HOSTS];

impl Suite {
    /// The name of an installed object, such as `ipam-webhook-service`.
    #[must_use]
    pub fn named(&self, rest: &str) -> String {
        format!("{}-{rest}", self.prefix)
    }

    /// Name of the `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`.
    #[must_use]
    pub fn configuration(&self, task: Task) -> String {
        self.named(match task {
            Task::Mutate => "mutating-webhook-configuration",
            Task::Validate => "validating-webhook-configuration",
        })
    }

    /// Name of the webhook Service.
    #[must_use]
    pub fn service(&self) -> String {
        self.named("webhook-service")
    }

    /// The hooks, by task and kind.
    #[must_use]
    pub fn hooks(&self) -> Vec<Hook> {
        let reviewers = (self.reviewers)();
        let mutated = reviewers.iter().filter(|reviewer| self.mutates(reviewer));
        let mutated = mutated.map(|reviewer| (Task::Mutate, *reviewer));
        let validated = reviewers.iter().map(|reviewer| (Task::Validate, *reviewer));
        let hooks = mutated.chain(validated);
        hooks
            .map(|(task, reviewer)| Hook {
                suite: *self,
                task,
                reviewer,
            })
            .collect()
    }

    /// Hooks of configurations that older Go managers installed, at paths of the former version. `kubectl apply` of newer
    /// configurations leaves them, and the API server rejects each write of a kind whose hook is not answered. They change
    /// nothing: those with defaults have the same names in all releases, so they are replaced.
    #[must_use]
    pub fn former_hooks(&self) -> Vec<Hook> {
        let Some(version) = self.former_version else {
            return Vec::new();
        };
        let reviewers = (self.reviewers)().into_iter();
        let without_defaults = reviewers.filter(|reviewer| !self.mutates(reviewer));
        without_defaults
            .map(|reviewer| Hook {
                suite: *self,
                task: Task::Mutate,
                reviewer: Reviewer {
                    version,
                    decode: |_| Ok(()),
                    ..reviewer
                },
            })
            .collect()
    }

    fn mutates(&self, reviewer: &Reviewer) -> bool {
        self.mutates_all || has_defaults(reviewer)
    }
}

fn has_defaults(reviewer: &Reviewer) -> bool {
    (reviewer.rows)().iter().any(|row| row.when == "default")
}

/// The task of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Set defaults.
    Mutate,
    /// Accept or reject the request.
    Validate,
}

/// A webhook for one kind at one path.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Its suite.
    pub suite: Suite,
    /// Its task.
    pub task: Task,
    /// Its rules.
    pub reviewer: Reviewer,
}

impl Hook {
    /// Whether its kind has defaults. Otherwise a mutation changes nothing.
    pub(crate) fn has_defaults(&self) -> bool {
        has_defaults(&self.reviewer)
    }

    /// The name in the webhook configuration, which users see in rejections.
    #[must_use]
    pub fn name(&self) -> String {
        let kind = self.reviewer.kind.to_lowercase();
        match (self.suite.has_task_in_names, self.task) {
            (false, _) => format!("{kind}.{}", self.suite.group),
            (true, Task::Mutate) => format!("default.{kind}.{}", self.suite.group),
            (true, Task::Validate) => format!("validation.{kind}.{}", self.suite.group),
        }
    }

    /// The path the API server posts to.
    #[must_use]
    pub fn path(&self) -> String {
        let verb = match self.task {
            Task::Mutate => "mutate",
            Task::Validate => "validate",
        };
        let Reviewer {
            group, version, kind, ..
        } = self.reviewer;
        format!("/{verb}-{}-{version}-{}", group.replace('.', "-"), kind.to_lowercase())
    }

    /// The operations it reviews.
    #[must_use]
    pub fn operations(&self) -> &'static [Operation] {
        match self.task {
            Task::Validate if related_objects::validates_deletion(self.reviewer.kind) => {
                &[Operation::Create, Operation::Update, Operation::Delete]
            }
            Task::Validate | Task::Mutate => &[Operation::Create, Operation::Update],
        }
    }
}

/// The operation as the API server writes it.
#[must_use]
pub const fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use metal3_api::catalog;

    use super::*;

    #[test]
    fn each_kind_with_rules_is_validated_and_each_with_defaults_is_mutated() {
        let hooks: Vec<Hook> = SUITES.iter().flat_map(Suite::hooks).collect();
        let count = |task: Task, kind: &str| {
            let found = |hook: &&Hook| hook.task == task && hook.reviewer.kind == kind;
            hooks.iter().filter(found).count()
        };
        for reviewer in catalog::reviewers() {
            assert_eq!(count(Task::Validate, reviewer.kind), 1, "{}", reviewer.kind);
            let has_defaults = (reviewer.rows)().iter().any(|row| row.when == "default");
            assert!(
                !has_defaults || count(Task::Mutate, reviewer.kind) == 1,
                "{}",
                reviewer.kind
            );
            let checks_deletion = (reviewer.rows)().iter().any(|row| row.when == "delete");
            assert!(!checks_deletion, "{} has no webhook for deletion", reviewer.kind);
        }
    }

    #[test]
    fn names_and_paths_are_unique() {
        let hooks: Vec<Hook> = SUITES.iter().flat_map(Suite::hooks).collect();
        let unique = |text: fn(&Hook) -> String| hooks.iter().map(text).collect::<BTreeSet<_>>().len();
        assert_eq!(unique(Hook::path), hooks.len());
        assert_eq!(unique(Hook::name), hooks.len());
    }

    #[test]
    fn conversion_uses_the_service_of_the_suite() {
        for suite in SUITES {
            let definitions = catalog::definitions().into_iter();
            let services: Vec<_> = definitions
                .filter(|definition| definition.group == suite.group)
                .filter_map(|definition| definition.conversion)
                .collect();
            assert_eq!(services.is_empty(), suite.group == HOSTS.group);
            for service in services {
                assert_eq!((service.name, service.namespace), (&*suite.service(), suite.namespace));
                let certificate = format!("{}/{}", suite.namespace, suite.named("serving-cert"));
                assert_eq!(service.certificate, certificate);
            }
        }
    }
}
