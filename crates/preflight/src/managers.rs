//! The managers that run: which, of which release, and whether this program takes their arguments.

use std::fmt;

use k8s_openapi::api::apps::v1::Deployment;
use metal3_flags::{Owner, Request};
use serde::{Serialize, Serializer};

use crate::finding::{Decision, Finding};

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
pub(crate) fn findings(managers: &[Manager], are_listed: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manager in managers {
        let object = format!("Deployment {}", manager.deployment);
        if manager.is_this_program {
            let what = format!("this program serves {} already", manager.controllers.join(", "));
            findings.push(Finding::new(Decision::Go, object, what, ""));
            continue;
        }
        findings.extend(release(manager, &object));
        findings.extend(arguments(manager, &object));
    }
    if managers.is_empty() && are_listed {
        let what = "no manager was found by the names that its release has";
        let cure = "name the Go managers that run under other names to this program by --foreign-deployments";
        findings.push(Finding::new(Decision::Go, "Deployments", what, cure));
    }
    findings
}

fn release(manager: &Manager, object: &str) -> Option<Finding> {
    let oldest = oldest(manager);
    match manager.series {
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
fn arguments(manager: &Manager, object: &str) -> Vec<Finding> {
    let controllers = format!("--controllers={}", manager.controllers.join(","));
    let given = [controllers].into_iter().chain(manager.arguments.iter().cloned());
    match metal3_flags::parse(given) {
        Ok(Request::Print(_)) => Vec::new(),
        Ok(Request::Run(options)) => {
            let without_effect = |warning: String| Finding::new(Decision::Go, object, warning, "");
            options.warnings.into_iter().map(without_effect).collect()
        }
        Err(errors) => {
            // The manifests of this program do not have it, and what it enabled has rules of its own.
            let cure = "do not copy this argument to this program, which would not start; docs/flags.md lists all";
            let refused = |error: metal3_flags::FlagError| Finding::new(Decision::Go, object, error.to_string(), cure);
            errors.into_iter().map(refused).collect()
        }
    }
}
