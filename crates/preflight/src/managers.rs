//! The managers that run: which, and of which release.

use std::fmt;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use metal3_flags::{FALSE, Owner};
use serde::{Serialize, Serializer};

/// The label on the Pods of this program.
const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "metal3-rs");
/// The label by which clusterctl knows the objects of a provider.
const PROVIDER: &str = "cluster.x-k8s.io/provider";
/// The label with the version of an application, as charts set it.
const VERSION: &str = "app.kubernetes.io/version";
/// The container of a manager in the manifests of all of them.
const CONTAINER: &str = "manager";
/// The programs in the images of the Go managers and of this program.
const PROGRAMS: [&str; 3] = ["manager", "baremetal-operator", "capm3"];

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
    /// The series of its image's tag if it is one, or what else says it.
    pub series: Option<Series>,
    /// The provider of clusterctl that it is of.
    #[serde(skip)]
    pub provider: Option<String>,
    /// The version that its labels say.
    #[serde(skip)]
    pub labelled: Option<String>,
    /// Replicas that are wanted.
    pub replicas: i32,
    /// Its arguments: those of its `command`, then its `args`.
    #[serde(skip)]
    pub arguments: Vec<String>,
    /// The program that its `command` starts in place of that of the image, which may give a manager other arguments.
    #[serde(skip)]
    pub started_by: Option<String>,
}

impl Manager {
    /// Whether its arguments turn HostClaims on.
    #[must_use]
    pub fn serves_claims(&self) -> bool {
        self.is_on("hostclaims")
    }

    /// Whether its arguments turn a switch on, in any spelling that a Go program takes. The last one counts.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        let last = flags(&self.arguments, name).last();
        last.is_some_and(|(value, _)| !value.is_some_and(|value| FALSE.contains(&value)))
    }

    /// Whether its arguments have a flag.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        flags(&self.arguments, name).next().is_some()
    }

    /// Its Deployment.
    #[must_use]
    pub fn find<'a>(&self, deployments: &'a [Deployment]) -> Option<&'a Deployment> {
        deployments.iter().find(|one| named(one) == self.deployment)
    }
}

/// Each use of a flag: its value after `=`, and the argument that follows, which is the value of a flag that is no switch.
fn flags<'a>(arguments: &'a [String], name: &str) -> impl Iterator<Item = (Option<&'a str>, Option<&'a str>)> {
    let next = arguments.iter().skip(1).map(|next| Some(next.as_str()));
    let next = next.chain([None]);
    arguments.iter().zip(next).filter_map(move |(argument, next)| {
        let bare = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?;
        let (flag, value) = match bare.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (bare, None),
        };
        (flag == name).then_some((value, next))
    })
}

/// `NAMESPACE/NAME`.
fn named(deployment: &Deployment) -> String {
    let meta = &deployment.metadata;
    let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
    format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
}

/// The container of a manager.
#[must_use]
pub fn container(deployment: &Deployment) -> Option<&Container> {
    let containers = &deployment.spec.as_ref()?.template.spec.as_ref()?.containers;
    let manager = containers.iter().find(|one| one.name == CONTAINER);
    manager.or_else(|| containers.first())
}

/// The name of the Deployment in the manifests of each release, whatever the namespace. The last one is this program's with
/// all controllers.
const NAMES: [(&str, &[Owner]); 4] = [
    ("capm3-controller-manager", &[Owner::Capm3]),
    ("ipam-controller-manager", &[Owner::Ipam]),
    ("baremetal-operator-controller-manager", &[Owner::Hosts]),
    ("metal3-controller-manager", &Owner::ALL),
];

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
    let container = container(deployment)?;
    let labels = spec.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let is_ours = labels.is_some_and(|labels| labels.get(PART_OF.0).is_some_and(|value| value == PART_OF.1));
    let image = container.image.clone().unwrap_or_default();
    let name_and_tag = image.split('@').next().unwrap_or_default();
    let tag = name_and_tag
        .rsplit_once(':')
        .map(|(_, tag)| tag)
        .filter(|tag| !tag.contains('/'));
    let label = |name: &str| deployment.metadata.labels.as_ref()?.get(name).cloned();
    let mut command = container.command.iter().flatten();
    let program = command.next();
    let started_by = program.filter(|path| !PROGRAMS.contains(&path.rsplit('/').next().unwrap_or_default()));
    let arguments: Vec<String> = command.chain(container.args.iter().flatten()).cloned().collect();
    let chosen = if is_ours { chosen(&arguments) } else { None };
    Some(Manager {
        controllers: chosen.unwrap_or_else(|| owners.iter().map(|owner| owner.name()).collect()),
        is_this_program: is_ours,
        deployment: named(deployment),
        started_by: started_by.cloned(),
        series: tag.and_then(Series::parse),
        provider: label(PROVIDER),
        labelled: label(VERSION),
        image,
        replicas: spec.replicas.unwrap_or(1),
        arguments,
    })
}

/// The controllers that the arguments of this program name: all of them in one Deployment need not run.
fn chosen(arguments: &[String]) -> Option<Vec<&'static str>> {
    let values = flags(arguments, "controllers").filter_map(|(value, next)| value.or(next));
    let chosen: Vec<&str> = values.flat_map(|list| list.split(',')).map(str::trim).collect();
    let is_named = |name: &&str| chosen.contains(name);
    (!chosen.is_empty()).then(|| Owner::ALL.into_iter().map(Owner::name).filter(is_named).collect())
}
