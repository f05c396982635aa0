//! Members of objects that the definitions of a Go manager do not have: the API server drops them as soon as these are applied.

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3ClusterTemplate, Metal3Machine, Metal3MachineTemplate};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::{INSPECT_ANNOTATION, INSPECTION_DISABLED};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use crate::finding::{Decision, Finding};
use crate::managers::Series;
use crate::objects::{Objects, named};

struct Member {
    kind: &'static str,
    path: &'static str,
    /// The first series that has it; `None` for none.
    since: Option<Series>,
    /// What a Go manager does without it.
    then: &'static str,
    cure: &'static str,
}

const REMOVE: &str = "do without it before the switch";
const ANOTHER: &str = "use another template without it before the switch";

const MEMBERS: [Member; 13] = [
    of(
        BareMetalHost::KIND,
        "/spec/disablePowerOff",
        Some(Series::new(1, 10)),
        "the machine may be powered off",
        REMOVE,
    ),
    of(
        BareMetalHost::KIND,
        "/spec/cleaning",
        None,
        "all disks of the machine are erased before each first and after each deployment, also those that are kept here",
        "set spec.automatedCleaningMode to disabled and remove spec.cleaning before the switch; then a Go manager erases no disk",
    ),
    of(
        BareMetalHost::KIND,
        "/spec/image/ociAuthSecretName",
        Some(Series::new(1, 13)),
        "the image is read without a login",
        REMOVE,
    ),
    of(
        Metal3Cluster::KIND,
        "/spec/clusterName",
        None,
        "machines of a Cluster with another infrastructure are neither served nor deleted, nor is this object",
        "delete its machines, and then it, before the switch",
    ),
    of(
        Metal3Cluster::KIND,
        "/spec/controlPlaneEndpointSource",
        None,
        "it has no endpoint unless spec.controlPlaneEndpoint has one",
        "write spec.controlPlaneEndpoint",
    ),
    of(
        Metal3Cluster::KIND,
        "/spec/deploymentZones",
        None,
        "a machine takes any host that its selector permits, and no data of its zone",
        "label the hosts with infrastructure.cluster.x-k8s.io/failure-domain, and select by it",
    ),
    of(
        Metal3Cluster::KIND,
        "/spec/failureDomainPolicy",
        None,
        "a machine takes a host of another failure domain where its own has none",
        "select hosts by their label infrastructure.cluster.x-k8s.io/failure-domain",
    ),
    of(
        Metal3Machine::KIND,
        "/spec/metal3ClusterRef",
        None,
        "the machine belongs to the infrastructure of its Cluster",
        "delete it before the switch, if that is another one",
    ),
    of(
        Metal3Machine::KIND,
        "/spec/identityRef",
        None,
        "the machine takes a host of this cluster",
        "delete it before the switch",
    ),
    of(
        Metal3MachineTemplate::KIND,
        "/spec/template/spec/metal3ClusterRef",
        None,
        "new machines of it belong to the infrastructure of their Cluster",
        ANOTHER,
    ),
    of(
        Metal3MachineTemplate::KIND,
        "/spec/template/spec/identityRef",
        None,
        "new machines of it take hosts of this cluster",
        ANOTHER,
    ),
    of(
        Metal3ClusterTemplate::KIND,
        "/spec/template/spec/deploymentZones",
        None,
        "machines of its Clusters take any host that their selectors permit",
        ANOTHER,
    ),
    of(
        Metal3ClusterTemplate::KIND,
        "/spec/template/spec/failureDomainPolicy",
        None,
        "machines of its Clusters take hosts of other failure domains",
        ANOTHER,
    ),
];

const fn of(
    kind: &'static str,
    path: &'static str,
    since: Option<Series>,
    then: &'static str,
    cure: &'static str,
) -> Member {
    Member {
        kind,
        path,
        since,
        then,
        cure,
    }
}

pub(super) fn dropped(objects: &Objects, to: Series) -> Vec<Finding> {
    let mut findings: Vec<Finding> = objects
        .documents::<BareMetalHost>()
        .iter()
        .filter_map(|host| inspection(host, to))
        .collect();
    let missing = MEMBERS
        .iter()
        .filter(|member| member.since.is_none_or(|since| to < since));
    for member in missing {
        let (_, documents) = match objects.iter().find(|(kind, _)| kind.kind == member.kind) {
            Some(found) => found,
            None => continue,
        };
        let is_set = |document: &&Value| {
            let empty = [Value::Null, json!(false), json!(""), json!([]), json!({})];
            document
                .pointer(member.path)
                .is_some_and(|value| !empty.contains(value))
        };
        findings.extend(documents.iter().filter(is_set).map(|document| {
            let name = member.path.trim_start_matches('/').replace('/', ".");
            let what = format!(
                "has {name}, which the definitions of release {to} do not have and drop: {}",
                member.then
            );
            Finding::new(Decision::No, named(member.kind, document), what, member.cure)
        }));
    }
    findings
}

/// The first series with `spec.inspectionMode`, and the first that asks the BMC. Before, an annotation alone disables the inspection, and
/// all series read it.
const HAS_MODES: Series = Series::new(1, 12);
const HAS_FAST: Series = Series::new(1, 14);

/// How a host is inspected. The agent is what a Go manager without the member takes.
fn inspection(host: &Value, to: Series) -> Option<Finding> {
    let mode = host.pointer("/spec/inspectionMode").and_then(Value::as_str)?;
    let annotation = host
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(INSPECT_ANNOTATION));
    let is_disabled = annotation.and_then(Value::as_str) == Some(INSPECTION_DISABLED);
    let no = |what: String, cure: &str| Some(Finding::new(Decision::No, named(BareMetalHost::KIND, host), what, cure));
    let dropped = format!("has spec.inspectionMode, which the definitions of release {to} do not have and drop");
    match mode {
        "disabled" if to < HAS_MODES && !is_disabled => no(
            format!("{dropped}: a host that is not inspected yet is inspected by the agent, which boots the machine"),
            "set the annotation inspect.metal3.io=disabled, which each release reads, and keep it: without it the host is inspected",
        ),
        "fast" if to < HAS_MODES && !is_disabled => no(
            format!("{dropped}: a host that is not inspected yet is inspected by the agent, which boots the machine"),
            "set spec.inspectionMode to agent if that may be, or set it to disabled, and the annotation inspect.metal3.io=disabled, which \
             each release reads",
        ),
        "fast" if to >= HAS_MODES && to < HAS_FAST => no(
            format!(
                "has spec.inspectionMode: fast, which release {to} does not know: its webhook rejects each update of the host"
            ),
            "set spec.inspectionMode to agent or disabled",
        ),
        _ => None,
    }
}
