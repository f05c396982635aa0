//! Whether this program can take the place of the managers that run.

pub(crate) mod scope;
pub(crate) mod version;

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::uri::without_logins;
use metal3_flags::{FlagError, Owner, Request};

use crate::facts::Facts;
use crate::finding::{Decision, Finding, NotRead};
use crate::managers::Manager;

/// The Deployments that this program waits for without `--foreign-deployments`.
pub const WAITED_FOR: [&str; 4] = [
    "capm3-system/capm3-controller-manager",
    "metal3-ipam-system/ipam-controller-manager",
    "capm3-system/ipam-controller-manager",
    "baremetal-operator-system/baremetal-operator-controller-manager",
];

/// What to do instead of a scope that this program does not have.
pub const ONE_NAMESPACE: &str = "run one process for each of these namespaces, each with --namespace; without it this program would \
    serve the objects of all namespaces";

/// The rules about the Go managers.
pub(crate) fn findings(facts: &Facts, managers: &[Manager]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manager in managers {
        let object = format!("Deployment {}", manager.deployment);
        if manager.is_this_program {
            let what = format!("this program serves {} already", manager.controllers.join(", "));
            findings.push(Finding::new(Decision::Go, object, what, ""));
            continue;
        }
        findings.extend(version::findings(facts, manager, &object));
        findings.extend(not_waited_for(manager, &object));
        findings.extend(arguments(facts, manager, &object));
    }
    findings
}

/// What is not known of the Go managers: their release, and the settings that may narrow their scope.
pub(crate) fn not_known(facts: &Facts, managers: &[Manager]) -> Vec<NotRead> {
    let theirs = managers.iter().filter(|manager| !manager.is_this_program);
    let mut not_known: Vec<NotRead> = theirs
        .filter_map(|manager| version::not_known(facts, manager))
        .collect();
    not_known.extend(scope::not_known(facts, managers));
    not_known
}

/// Controllers whose objects exist, and whose manager has none of the names that are known.
pub(crate) fn not_found(facts: &Facts, managers: &[Manager]) -> Vec<NotRead> {
    if !facts.are_listed("deployments") {
        return Vec::new();
    }
    let has = |kind: &str| {
        let mut all = facts.objects.iter();
        all.any(|(name, objects)| name.kind == kind && !objects.is_empty())
    };
    let missing = Owner::ALL.into_iter().filter(|owner| {
        let kinds: &[&str] = match owner {
            Owner::Capm3 => &[Metal3Cluster::KIND, Metal3Machine::KIND],
            Owner::Ipam => &[IPPool::KIND],
            Owner::Hosts => &[BareMetalHost::KIND],
        };
        let is_found = managers
            .iter()
            .any(|manager| manager.controllers.contains(&owner.name()));
        !is_found && kinds.iter().any(|kind| has(kind))
    });
    let not_read = |owner: Owner| {
        NotRead {
        what: format!("the manager of {}", owner.name()),
        why: "its objects exist, and no Deployment has a name of its release: one under another name would serve the same objects as \
              this program, unless it is named by --foreign-deployments; its settings are not judged"
            .to_owned(),
    }
    };
    missing.map(not_read).collect()
}

/// It would go on next to this program, which looks for it in the namespace of its release.
fn not_waited_for(manager: &Manager, object: &str) -> Option<Finding> {
    let at = &manager.deployment;
    if manager.replicas == 0 || WAITED_FOR.contains(&at.as_str()) {
        return None;
    }
    let what = "runs in a namespace in which this program does not look for it: both would serve the same objects";
    let owner = manager.controllers.first()?;
    let cure = format!(
        "install this program in its place, or scale it to 0 first and start this program with --foreign-deployments={owner}={at}"
    );
    Some(Finding::new(Decision::No, object, what, cure))
}

/// Whether this program starts with the arguments of the Deployment.
fn arguments(facts: &Facts, manager: &Manager, object: &str) -> Vec<Finding> {
    let controllers = format!("--controllers={}", manager.controllers.join(","));
    let known = scope::known_arguments(facts, manager);
    let mut findings = match metal3_flags::parse([controllers].into_iter().chain(known)) {
        Ok(Request::Help(_) | Request::Version(_)) => return Vec::new(),
        Ok(Request::Run(options)) => {
            let without_effect = |warning: String| Finding::new(Decision::Go, object, warning, "");
            options.warnings.into_iter().map(without_effect).collect()
        }
        Err(errors) => errors.iter().map(|error| refused(error, object)).collect::<Vec<_>>(),
    };
    findings.extend(scope::kept(facts, manager, object));
    findings
}

/// The text may be one that is no flag.
fn refused(error: &FlagError, object: &str) -> Finding {
    let what = without_logins(&error.to_string());
    if error.flag() == Some("namespace") {
        return Finding::new(Decision::No, object, what, ONE_NAMESPACE).row("hosts-one-namespace");
    }
    if error
        .flag()
        .is_some_and(|flag| ["demo-mode", "test-mode", "provisioner"].contains(&flag))
    {
        let cure = "its hosts are not those of Ironic: this program would register their machines";
        return Finding::new(Decision::No, object, what, cure);
    }
    // The manifests of this program do not have it, and what it enabled has rules of its own.
    let cure = "do not copy this argument to this program, which would not start; docs/flags.md lists all";
    Finding::new(Decision::Go, object, what, cure)
}
