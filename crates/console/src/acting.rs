//! What pages change, with the rights of the kubeconfig and nothing else.
//!
//! An action is compared with the host as the API server has it at this moment, and holds for that version of it only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Clock;
use metal3_domain::uri::public_text;
use metal3_explain::text::printable_text;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::Notice;
use crate::actions::{Refusal, Wanted, patch};
use crate::lab::{Lab, Offer};

/// A host that controllers write at the same time is read again this often.
const TRIES: usize = 4;
/// The time that the API server has for all requests of a page.
const PATIENCE: Duration = Duration::from_secs(15);
/// Who was refused a right asks for it, and looks again.
const REFUSED: Duration = Duration::from_secs(60);
/// Answers about rights that are kept.
const MOST_RIGHTS: usize = 1_000;
/// The owner of what is written, in `managedFields`.
const MANAGER: &str = "metal3-console";

/// Whether a viewer may change a host, as pages get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Rights {
    may: bool,
    /// Why not.
    why: String,
    /// What can be done to the machine of the host, if it is simulated.
    lab: Vec<Offer>,
}

/// What was done, as pages get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Done {
    done: bool,
    text: String,
}

/// Gets a line for each action.
type Announce = Arc<dyn Fn(&Notice<'_>) + Send + Sync>;

pub(crate) struct Acting {
    client: Client,
    clock: Arc<dyn Clock>,
    lab: Option<Arc<dyn Lab>>,
    announce: Announce,
    is_read_only: bool,
    /// By namespace and host; without a host for all of the namespace.
    rights: Mutex<BTreeMap<(String, String), (bool, Instant)>>,
    tasks: TaskTracker,
}

impl Acting {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, options: &crate::Options, announce: Announce) -> Self {
        Self {
            client,
            clock,
            lab: options.lab.clone(),
            announce,
            is_read_only: options.is_read_only,
            rights: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Whether the viewer may change a host: asked once for a namespace, and for the host if not all of it may be changed.
    pub(crate) async fn rights(&self, namespace: &str, name: &str) -> Rights {
        let lab = self.lab.iter().flat_map(|lab| lab.offers(namespace, name)).collect();
        let why = match self.may(namespace, name).await {
            _ if self.is_read_only => "The console was started with --read-only.".to_owned(),
            Ok(true) => String::new(),
            Ok(false) => format!(
                "You may not change this host. Ask for the right to patch baremetalhosts; check it with: \
                 kubectl auth can-i patch {}.{}/{name} -n {namespace}",
                BareMetalHost::PLURAL,
                BareMetalHost::GROUP
            ),
            Err(error) => format!("It is not known whether you may change this host: {error}"),
        };
        Rights {
            may: why.is_empty(),
            why,
            lab,
        }
    }

    async fn may(&self, namespace: &str, name: &str) -> Result<bool, String> {
        Ok(!self.is_read_only && (self.has_right(namespace, "").await? || self.has_right(namespace, name).await?))
    }

    async fn has_right(&self, namespace: &str, name: &str) -> Result<bool, String> {
        let place = (namespace.to_owned(), name.to_owned());
        let known = self.rights.lock().get(&place).copied();
        if let Some((may, asked)) = known
            && (may || asked.elapsed() < REFUSED)
        {
            return Ok(may);
        }
        let attributes = ResourceAttributes {
            verb: Some("patch".to_owned()),
            group: Some(BareMetalHost::GROUP.to_owned()),
            resource: Some(BareMetalHost::PLURAL.to_owned()),
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews = Api::<SelfSubjectAccessReview>::all(self.client.clone());
        let params = PostParams::default();
        let answer = within(reviews.create(&params, &review)).await?;
        let may = answer.status.is_some_and(|status| status.allowed);
        let mut rights = self.rights.lock();
        if rights.len() >= MOST_RIGHTS {
            rights.clear();
        }
        rights.insert(place, (may, Instant::now()));
        Ok(may)
    }

    /// The same as a task of its own: it runs to its end, and is announced, also when the page is closed meanwhile.
    pub(crate) async fn act_to_the_end(self: &Arc<Self>, wanted: Wanted) -> Option<Done> {
        let own = Arc::clone(self);
        let done = self.tasks.spawn(async move { own.act(&wanted).await });
        done.await.ok()
    }

    /// Does what a page asks for, and has it printed.
    async fn act(&self, wanted: &Wanted) -> Done {
        let of_lab = self
            .lab
            .as_ref()
            .filter(|_| wanted.action.starts_with(crate::lab::PREFIX));
        let result = match of_lab {
            Some(lab) => {
                let done = lab.act(&wanted.namespace, &wanted.name, &wanted.action).await;
                done.map(|()| "Done.".to_owned())
            }
            None if self.is_read_only => Err("The console was started with --read-only.".to_owned()),
            None => self.change(wanted).await,
        };
        let (done, text) = match result {
            Ok(text) => (true, text),
            Err(text) => (false, text),
        };
        let time = self.clock.now().format("%Y-%m-%dT%H:%M:%SZ");
        let Wanted {
            namespace,
            name,
            action,
            ..
        } = wanted;
        let line = format!("{time} {action} BareMetalHost {namespace}/{name}: {text}");
        (self.announce)(&Notice::Action(&printable_text(&line).replace('\n', " ")));
        Done { done, text }
    }

    async fn change(&self, wanted: &Wanted) -> Result<String, String> {
        let hosts = self.hosts(&wanted.namespace);
        for _ in 0..TRIES {
            let host = within(hosts.get(&wanted.name)).await?;
            let host = serde_json::to_value(host).map_err(|error| error.to_string())?;
            let patch = patch(&host, wanted).map_err(|refusal| refusal.text().to_owned())?;
            match self.send(&hosts, &wanted.name, &patch).await {
                Ok(()) => return Ok("Done: the host is changed, and this page follows what becomes of it.".to_owned()),
                // The host has another version now.
                Err(Failure::Conflict) => {}
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        Err(Refusal::NotNow.text().to_owned())
    }

    async fn send(&self, hosts: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), Failure> {
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let sent = tokio::time::timeout(PATIENCE, hosts.patch(name, &params, &patch)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Failure::Conflict),
            Ok(Err(error)) => {
                if matches!(&error, kube::Error::Api(status) if status.code == 403) {
                    self.rights.lock().clear();
                }
                Err(Failure::Other(public_text(&error.to_string())))
            }
            // It may have arrived.
            Err(_) => Err(Failure::Other(
                "The API server did not answer in time, and it is not known whether the host was changed. This page shows it once \
                 it is known."
                    .to_owned(),
            )),
        }
    }

    fn hosts(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: BareMetalHost::GROUP.to_owned(),
            version: BareMetalHost::VERSION.to_owned(),
            api_version: format!("{}/{}", BareMetalHost::GROUP, BareMetalHost::VERSION),
            kind: BareMetalHost::KIND.to_owned(),
            plural: BareMetalHost::PLURAL.to_owned(),
        };
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }
}

/// Why a patch has no result.
enum Failure {
    Conflict,
    Other(String),
}

/// The result of a read, or why there is none.
async fn within<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(answer) => answer.map_err(|error| public_text(&error.to_string())),
        Err(_) => Err("the API server did not answer in time".to_owned()),
    }
}
