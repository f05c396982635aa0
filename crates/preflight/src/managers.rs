//! The managers that run: which, and of which release.

use std::fmt;

use k8s_openapi::api::apps::v1::Deployment;
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
    /// Its arguments.
    #[serde(skip)]
    pub arguments: Vec<String>,
}

impl Manager {
    /// Whether its arguments turn HostClaims on, in any spelling that a Go program takes.
    #[must_use]
    pub fn serves_claims(&self) -> bool {
        self.arguments.iter().any(|argument| {
            let (name, value) = argument.split_once('=').unwrap_or((argument, "true"));
            ["--hostclaims", "-hostclaims"].contains(&name) && !FALSE.contains(&value)
        })
    }
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
    let label = |name: &str| deployment.metadata.labels.as_ref()?.get(name).cloned();
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
        provider: label(PROVIDER),
        labelled: label(VERSION),
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
