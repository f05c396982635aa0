//! Which questions the API server asks, under which names and paths. They are the Go managers', so that a cluster can be
//! handed over without a moment at which a configuration points nowhere.

use std::fmt;

use metal3_api::rules::{Operation, Reviewer};
use metal3_api::{infrastructure, ipam, metal3};

use crate::neighbours;

/// What is installed together: the webhooks of one API group.
#[derive(Clone, Copy)]
pub struct Suite {
    /// API group.
    pub group: &'static str,
    /// What the names of the installed objects begin with.
    pub prefix: &'static str,
    /// Namespace of the Service, before an installer moves it.
    pub namespace: &'static str,
    /// The installer's name for the provider, where there is one.
    pub provider: Option<&'static str>,
    /// Whether hooks are named for their task, as in `validation.ippool.ipam.metal3.io`.
    names_task: bool,
    /// Whether each kind is filled in, though no row says so.
    fills_all: bool,
    reviewers: fn() -> Vec<Reviewer>,
}

/// `infrastructure.cluster.x-k8s.io`.
pub const INFRASTRUCTURE: Suite = Suite {
    group: infrastructure::names::GROUP,
    prefix: "capm3",
    namespace: "capm3-system",
    provider: Some("infrastructure-metal3"),
    names_task: true,
    fills_all: false,
    reviewers: infrastructure::reviewers,
};

/// `ipam.metal3.io`. The Go manager asks to fill in all three kinds and fills in nothing; the questions stay, because
/// its configuration may be installed when ours starts to answer.
pub const IPAM: Suite = Suite {
    group: ipam::names::GROUP,
    prefix: "ipam",
    namespace: "metal3-ipam-system",
    provider: Some("ipam-metal3"),
    names_task: true,
    fills_all: true,
    reviewers: ipam::reviewers,
};

/// `metal3.io`.
pub const HOSTS: Suite = Suite {
    group: metal3::names::GROUP,
    prefix: "baremetal-operator",
    namespace: "baremetal-operator-system",
    provider: None,
    names_task: false,
    fills_all: false,
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
            Task::Fill => "mutating-webhook-configuration",
            Task::Judge => "validating-webhook-configuration",
        })
    }

    /// Name of the Service that the API server asks.
    #[must_use]
    pub fn service(&self) -> String {
        self.named("webhook-service")
    }

    /// The questions, by task and kind.
    #[must_use]
    pub fn hooks(&self) -> Vec<Hook> {
        let reviewers = (self.reviewers)();
        let filled = reviewers.iter().filter(|reviewer| self.fills(reviewer));
        let filled = filled.map(|reviewer| (Task::Fill, *reviewer));
        let judged = reviewers.iter().map(|reviewer| (Task::Judge, *reviewer));
        let hooks = filled.chain(judged);
        hooks
            .map(|(task, reviewer)| Hook {
                suite: *self,
                task,
                reviewer,
            })
            .collect()
    }

    fn fills(&self, reviewer: &Reviewer) -> bool {
        self.fills_all || (reviewer.rows)().iter().any(|row| row.when == "default")
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Suite").field(&self.group).finish()
    }
}

/// What is asked of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// To fill in what the user left out.
    Fill,
    /// To let the request through or refuse it.
    Judge,
}

/// One question: about one kind, at one path.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Where it is installed.
    pub suite: Suite,
    /// What is asked.
    pub task: Task,
    /// The rules that answer.
    pub reviewer: Reviewer,
}

impl Hook {
    /// The name in the webhook configuration, which users see in refusals.
    #[must_use]
    pub fn name(&self) -> String {
        let kind = self.reviewer.kind.to_lowercase();
        match (self.suite.names_task, self.task) {
            (false, _) => format!("{kind}.{}", self.suite.group),
            (true, Task::Fill) => format!("default.{kind}.{}", self.suite.group),
            (true, Task::Judge) => format!("validation.{kind}.{}", self.suite.group),
        }
    }

    /// The path the API server posts to.
    #[must_use]
    pub fn path(&self) -> String {
        let verb = match self.task {
            Task::Fill => "mutate",
            Task::Judge => "validate",
        };
        let Reviewer {
            group, version, kind, ..
        } = self.reviewer;
        format!("/{verb}-{}-{version}-{}", group.replace('.', "-"), kind.to_lowercase())
    }

    /// The operations it is asked about.
    #[must_use]
    pub fn operations(&self) -> &'static [Operation] {
        match self.task {
            Task::Judge if neighbours::judges_deletion(self.reviewer.kind) => {
                &[Operation::Create, Operation::Update, Operation::Delete]
            }
            Task::Judge | Task::Fill => &[Operation::Create, Operation::Update],
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
    fn each_kind_with_rules_is_judged_and_each_with_fillings_is_filled_in() {
        let hooks: Vec<Hook> = SUITES.iter().flat_map(Suite::hooks).collect();
        let asked = |task: Task, kind: &str| {
            let found = |hook: &&Hook| hook.task == task && hook.reviewer.kind == kind;
            hooks.iter().filter(found).count()
        };
        for reviewer in catalog::reviewers() {
            assert_eq!(asked(Task::Judge, reviewer.kind), 1, "{}", reviewer.kind);
            let fills = (reviewer.rows)().iter().any(|row| row.when == "default");
            assert!(!fills || asked(Task::Fill, reviewer.kind) == 1, "{}", reviewer.kind);
            let looks_at_deletion = (reviewer.rows)().iter().any(|row| row.when == "delete");
            assert!(!looks_at_deletion, "{} is not asked about deletion", reviewer.kind);
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
    fn conversion_is_asked_of_the_service_of_the_suite() {
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
