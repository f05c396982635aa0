//! The managers that run: which, of which release, and whether this program takes their arguments.

use std::fmt;

use k8s_openapi::api::apps::v1::Deployment;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::uri::without_logins;
use metal3_flags::{FlagError, Owner, Request};
use serde::{Serialize, Serializer};

use crate::facts::Facts;
use crate::finding::{Decision, Finding};
use crate::settings::{Variable, expanded};

/// The label on the Pods of this program.
const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "metal3-rs");
/// The container of a manager in the manifests of all of them.
const CONTAINER: &str = "manager";

/// The series of a release, such as 1.13.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl Series {
    /// A series.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The series of a version or of an image's tag, such as `v1.13.2` or `1.13`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.split('-').next()?.parse().ok()?;
        Some(Self { major, minor })
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// Its controllers: `capm3`, `ipam` and `hosts`, or one of them.
    pub controllers: Vec<&'static str>,
    /// Whether it is this program.
    pub is_this_program: bool,
    /// `NAMESPACE/NAME` of its Deployment.
    pub deployment: String,
    /// Its image.
    pub image: String,
    /// The series of its image's tag, if it is one.
    pub series: Option<Series>,
    /// Replicas that are wanted.
    pub replicas: i32,
    /// Its arguments.
    #[serde(skip)]
    pub arguments: Vec<String>,
}

/// The name of the Deployment in the manifests of each release, whatever the namespace. The last one is this program's with
/// all controllers.
const NAMES: [(&str, &[Owner]); 4] = [
    ("capm3-controller-manager", &[Owner::Capm3]),
    ("ipam-controller-manager", &[Owner::Ipam]),
    ("baremetal-operator-controller-manager", &[Owner::Hosts]),
    ("metal3-controller-manager", &Owner::ALL),
];

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

/// The newest series that is known.
fn newest(manager: &Manager) -> Series {
    if manager.controllers == [Owner::Hosts.name()] {
        Series::new(0, 14)
    } else {
        Series::new(1, 14)
    }
}

/// The oldest series whose objects this program takes over.
fn oldest(manager: &Manager) -> Series {
    if manager.controllers == [Owner::Hosts.name()] {
        Series::new(0, 9)
    } else {
        Series::new(1, 9)
    }
}

/// The managers among the Deployments.
#[must_use]
pub fn found(deployments: &[Deployment]) -> Vec<Manager> {
    let mut found: Vec<Manager> = deployments.iter().filter_map(manager).collect();
    found.sort_by(|a, b| a.deployment.cmp(&b.deployment));
    found
}

fn manager(deployment: &Deployment) -> Option<Manager> {
    let name = deployment.metadata.name.as_deref()?;
    let (_, owners) = NAMES.into_iter().find(|(of_release, _)| *of_release == name)?;
    let spec = deployment.spec.as_ref()?;
    let pod = spec.template.spec.as_ref()?;
    let named = pod.containers.iter().find(|one| one.name == CONTAINER);
    let container = named.or_else(|| pod.containers.first())?;
    let labels = spec.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let is_ours = labels.is_some_and(|labels| labels.get(PART_OF.0).is_some_and(|value| value == PART_OF.1));
    let image = container.image.clone().unwrap_or_default();
    let name_and_tag = image.split('@').next().unwrap_or_default();
    let tag = name_and_tag
        .rsplit_once(':')
        .map(|(_, tag)| tag)
        .filter(|tag| !tag.contains('/'));
    let arguments = container.args.clone().unwrap_or_default();
    let chosen = if is_ours { chosen(&arguments) } else { None };
    Some(Manager {
        controllers: chosen.unwrap_or_else(|| owners.iter().map(|owner| owner.name()).collect()),
        is_this_program: is_ours,
        deployment: format!(
            "{}/{name}",
            deployment.metadata.namespace.as_deref().unwrap_or_default()
        ),
        series: tag.and_then(Series::parse),
        image,
        replicas: spec.replicas.unwrap_or(1),
        arguments,
    })
}

/// The controllers that the arguments of this program name: all of them in one Deployment need not run.
fn chosen(arguments: &[String]) -> Option<Vec<&'static str>> {
    let flag = |one: &String| {
        one.trim_start_matches('-')
            .strip_prefix("controllers=")
            .map(str::to_owned)
    };
    let list = arguments.iter().find_map(flag)?;
    let is_named = |name: &&str| list.split(',').any(|one| one.trim() == *name);
    Some(Owner::ALL.into_iter().map(Owner::name).filter(is_named).collect())
}

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
        findings.extend(release(manager, &object));
        findings.extend(not_waited_for(manager, &object));
        findings.extend(arguments(facts, manager, &object));
    }
    if facts.are_listed("deployments") {
        findings.extend(not_found(facts, managers));
    }
    findings
}

/// Controllers whose objects exist, and whose manager has none of the names that are known.
fn not_found(facts: &Facts, managers: &[Manager]) -> Vec<Finding> {
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
    let finding = |owner: Owner| {
        let what = format!(
            "no manager of {} was found by the names that its release has: one that runs under another name would serve the same \
             objects as this program",
            owner.name()
        );
        let cure = "name it to this program by --foreign-deployments, and its settings are not judged here";
        Finding::new(Decision::Go, "Deployments", what, cure)
    };
    missing.map(finding).collect()
}

/// It would go on beside this program, which looks for it in the namespace of its release.
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

fn release(manager: &Manager, object: &str) -> Option<Finding> {
    let (oldest, newest) = (oldest(manager), newest(manager));
    match manager.series {
        Some(series) if series > newest => Some(Finding::new(
            Decision::No,
            object,
            format!("release {series} is newer than {newest}, the newest whose objects are taken over"),
            "take a newer release of this program, or go back to that release first",
        )),
        Some(series) if series < oldest => Some(Finding::new(
            Decision::No,
            object,
            format!("release {series} is older than {oldest}, the oldest whose objects are taken over"),
            format!("upgrade it to {oldest} or later first"),
        )),
        Some(_) => None,
        None => Some(Finding::new(
            Decision::Go,
            object,
            format!("the tag of {} does not say the release", manager.image),
            format!("make sure that it is {oldest} or later"),
        )),
    }
}

/// Whether this program starts with the arguments of the Deployment.
fn arguments(facts: &Facts, manager: &Manager, object: &str) -> Vec<Finding> {
    let controllers = format!("--controllers={}", manager.controllers.join(","));
    let given = manager.arguments.iter().map(|argument| {
        let variables = facts.given.iter().find(|one| one.deployment == manager.deployment);
        let variables = variables.map_or(&[][..], |one| &one.variables);
        expanded(argument, |name| Variable::find(variables, name)?.value.clone())
    });
    match metal3_flags::parse([controllers].into_iter().chain(given)) {
        Ok(Request::Print(_)) => Vec::new(),
        Ok(Request::Run(options)) => {
            let without_effect = |warning: String| Finding::new(Decision::Go, object, warning, "");
            options.warnings.into_iter().map(without_effect).collect()
        }
        Err(errors) => errors.iter().map(|error| refused(error, object)).collect(),
    }
}

/// The text may be one that is no flag.
fn refused(error: &FlagError, object: &str) -> Finding {
    let what = without_logins(&error.to_string());
    if error.flag() == Some("namespace") {
        return Finding::new(Decision::No, object, what, ONE_NAMESPACE).row("hosts-one-namespace");
    }
    // The manifests of this program do not have it, and what it enabled has rules of its own.
    let cure = "do not copy this argument to this program, which would not start; docs/flags.md lists all";
    Finding::new(Decision::Go, object, what, cure)
}
