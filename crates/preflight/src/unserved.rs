//! Kinds in use that this program does not serve.

use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, BareMetalSwitch, FirmwareSchema, HardwareData, HostClaim, HostDeployPolicy, HostNetworkAttachment,
    PreprovisioningImage,
};
use metal3_flags::{FALSE, Owner};
use serde_json::Value;

use crate::finding::{Decision, Finding};
use crate::managers::Manager;
use crate::objects::{Objects, name};
use crate::settings::{Given, Variable};

/// The variable that makes a controller of switches run, here and in the Go manager.
const NETWORKING: &str = "IRONIC_NETWORKING_ENABLED";

pub(crate) fn findings(objects: &Objects, given: &[Given], managers: &[Manager]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let claims = objects.documents::<HostClaim>().iter();
    let served = Served::of(objects, managers);
    findings.extend(claims.map(|one| claim(one, served, objects)));
    findings.extend(objects.documents::<PreprovisioningImage>().iter().map(|document| {
        let what = "is served with --build-preprov-image only; without that flag it stays as it is";
        Finding::new(Decision::Go, name::<PreprovisioningImage>(document), what, "").row("agent-image-builder")
    }));
    let policies = "it is served with --hostclaims only, as by the Go manager; an expression must match a whole name";
    findings.extend(objects.documents::<HostDeployPolicy>().iter().map(|document| {
        Finding::new(Decision::Go, name::<HostDeployPolicy>(document), policies, "").row("claim-policy")
    }));
    findings.extend(each::<HostNetworkAttachment>(objects, Decision::Go, ""));
    let mut networking = given
        .iter()
        .filter_map(|given| Variable::find(&given.variables, NETWORKING));
    match networking.any(|variable| !is_off(variable.value.as_deref().unwrap_or("true"))) {
        true => findings.extend(
            objects
                .documents::<BareMetalSwitch>()
                .iter()
                .filter_map(|one| switch(one, objects)),
        ),
        false => {
            let switches = "it is served with IRONIC_NETWORKING_ENABLED only, as by the Go manager";
            findings.extend(each::<BareMetalSwitch>(objects, Decision::Go, switches));
        }
    }
    findings.extend(undecodable::<HardwareData>(objects));
    findings.extend(undecodable::<FirmwareSchema>(objects));
    findings
}

/// What serves HostClaims, before the switch and after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Served {
    /// This program already: the switch changes nothing for them.
    Already,
    /// This program, from the switch on, with policies that open hosts to them.
    FromTheSwitch,
    /// Nothing, or nothing that may take a host.
    Not,
}

impl Served {
    fn of(objects: &Objects, managers: &[Manager]) -> Self {
        let of_hosts = managers
            .iter()
            .filter(|manager| manager.controllers.contains(&Owner::Hosts.name()));
        // While a Go manager runs, this program waits.
        let is_ours = of_hosts
            .clone()
            .all(|manager| manager.is_this_program || manager.replicas == 0);
        let mut serving = of_hosts.filter(|manager| manager.serves_claims());
        let runs_here = |manager: &Manager| manager.is_this_program && manager.replicas > 0;
        if is_ours && serving.clone().any(runs_here) {
            Self::Already
        } else if serving.next().is_some() && !objects.documents::<HostDeployPolicy>().is_empty() {
            Self::FromTheSwitch
        } else {
            Self::Not
        }
    }
}

/// A host of the Go manager gets the spec of its claim here.
fn claim(document: &Value, served: Served, objects: &Objects) -> Finding {
    let found =
        |decision, what, cure| Finding::new(decision, name::<HostClaim>(document), what, cure).row("claim-cleaning");
    let is_asked = ["/spec/image/url", "/spec/customDeploy/method"]
        .iter()
        .any(|place| !text(document, place).is_empty());
    if served == Served::Already {
        return found(Decision::Go, "is served by this program already", "");
    }
    if served == Served::FromTheSwitch && is_asked && runs_what_is_asked(document, objects) {
        let what = "is on a host that runs what it asks for already, so that this program deploys nothing for it";
        return found(Decision::Go, what, "");
    }
    if served == Served::FromTheSwitch && is_asked {
        let what = "asks for a system; with --hostclaims this program deploys it on a host that a policy permits and that runs nothing, which \
                    writes its disk, and the Go manager never does that";
        let cure = "delete the claim, its image or the policy before the switch if that shall not be; or start this program without \
                    --hostclaims, and set it when the switch has ended";
        return found(Decision::No, what, cure);
    }
    let what = "is served with --hostclaims only; a host that a policy permits and that runs nothing then gets its spec, which the Go manager \
                never gives it, and without the flag it stays as it is and keeps its finalizer";
    let cure = "to serve it, set the flag and bind the ClusterRole PREFIX-hostclaims-role of the release (docs/controllers/hostclaim.md)";
    found(Decision::Go, what, cure)
}

/// Whether claim and host name each other, and the host is provisioned with what the claim asks for.
fn runs_what_is_asked(claim: &Value, objects: &Objects) -> bool {
    let of_claim = |place: &str| text(claim, place);
    let is_bound = |host: &&Value| {
        let at = |place: &str| text(host, place);
        let group = at("/spec/consumerRef/apiVersion").split('/').next().unwrap_or_default();
        let consumer = [
            at("/spec/consumerRef/kind"),
            at("/spec/consumerRef/namespace"),
            at("/spec/consumerRef/name"),
        ];
        let named = ["/status/bareMetalHost/namespace", "/status/bareMetalHost/name"].map(of_claim);
        group == HostClaim::GROUP
            && consumer
                == [
                    HostClaim::KIND,
                    of_claim("/metadata/namespace"),
                    of_claim("/metadata/name"),
                ]
            && named == [at("/metadata/namespace"), at("/metadata/name")]
    };
    let runs = |host: &Value| {
        let at = |place: &str| text(host, place);
        at("/status/provisioning/state") == "provisioned"
            && at("/status/provisioning/image/url") == of_claim("/spec/image/url")
            && at("/status/provisioning/customDeploy/method") == of_claim("/spec/customDeploy/method")
    };
    objects
        .documents::<BareMetalHost>()
        .iter()
        .find(is_bound)
        .is_some_and(runs)
}

fn is_off(value: &str) -> bool {
    let value = value.trim();
    value.is_empty() || FALSE.contains(&value)
}

/// Where a host names a Secret of its namespace.
const SECRETS_OF_HOST: [&str; 6] = [
    "/spec/bmc/credentialsName",
    "/spec/preprovisioningNetworkDataName",
    "/spec/userData/name",
    "/spec/metaData/name",
    "/spec/networkData/name",
    "/spec/image/ociAuthSecretName",
];

fn text<'a>(document: &'a Value, place: &str) -> &'a str {
    document.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// A switch that the Go manager serves, and this program does not, or not with a new login.
fn switch(document: &Value, objects: &Objects) -> Option<Finding> {
    let at = |place: &str| text(document, place);
    let (own, named) = (at("/metadata/namespace"), at("/spec/credentials/namespace"));
    let secret = at("/spec/credentials/name");
    let no = |what: String, cure: &str| {
        let found = Finding::new(Decision::No, name::<BareMetalSwitch>(document), what, cure);
        Some(found.row("switch-credentials-secret"))
    };
    if !named.is_empty() && named != own {
        let what = format!("names a Secret of the namespace {named}, which is not read: the switch would be left out");
        let cure = "create the Secret in the namespace of the switch, with the label environment.metal3.io: baremetal, and name it there";
        return no(what, cure);
    }
    let names_it = |host: &&Value| {
        let mut places = SECRETS_OF_HOST.into_iter();
        text(host, "/metadata/namespace") == own && places.any(|place| text(host, place) == secret)
    };
    let mut hosts = objects.documents::<BareMetalHost>().iter();
    let host = hosts.find(names_it).filter(|_| !secret.is_empty())?;
    let what = format!(
        "names Secret {secret}, and so does BareMetalHost {}: a new login in it would not be written",
        text(host, "/metadata/name")
    );
    no(
        what,
        "create a Secret for the switch alone, with the label environment.metal3.io: baremetal, and name it there",
    )
}

/// Kinds that have no admission rules, which would say it.
fn undecodable<K: Kind>(objects: &Objects) -> impl Iterator<Item = Finding> {
    let wrong = |document: &Value| {
        let why = serde_json::from_value::<K>(document.clone()).err()?;
        let cure = "correct it before the switch";
        let what = format!("cannot be decoded: {why}");
        Some(Finding::new(Decision::No, name::<K>(document), what, cure))
    };
    objects.documents::<K>().iter().filter_map(wrong)
}

fn each<K: Kind>(objects: &Objects, decision: Decision, cure: &'static str) -> impl Iterator<Item = Finding> {
    let documents = objects.documents::<K>().iter();
    documents.map(move |document| unserved(name::<K>(document), decision, cure))
}

fn unserved(name: String, decision: Decision, cure: &str) -> Finding {
    let what = "is of a kind that no controller of this program serves; it stays as it is";
    Finding::new(decision, name, what, cure).row("kind-unserved")
}
