//! What pages change, with the rights of the kubeconfig and nothing else.
//!
//! An action is compared with the host as the API server has it at this moment, and holds for that version of it only. It has one
//! session and one deadline: neither the next login nor an API server that answers again has it sent later.

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
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::actions::{Refusal, Wanted, patch};
use crate::lab::{Lab, Offer};
use crate::login::{Login, Session, is_of_login, is_silence};
use crate::{Notice, line_of};

/// A host that controllers write at the same time is read again this often.
const TRIES: usize = 4;
/// The time that the API server has for all that one request of a page needs.
const PATIENCE: Duration = Duration::from_secs(15);
/// Who was refused a right asks for it, and looks again.
const REFUSED: Duration = Duration::from_secs(60);
/// Answers about rights that are kept.
const MOST_RIGHTS: usize = 1_000;
/// The owner of what is written, in `managedFields`.
const MANAGER: &str = "metal3-console";
const READ_ONLY: &str = "The console was started with --read-only.";
const NOT_ACCEPTED: &str = "The API server did not accept the login. Nothing was changed.";
const LATE: &str = "The API server did not answer in time. Nothing was changed.";
const CLOSED: &str = "The page was closed before the change was sent. Nothing was changed.";

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
    login: Arc<Login>,
    clock: Arc<dyn Clock>,
    lab: Option<Arc<dyn Lab>>,
    announce: Announce,
    is_read_only: bool,
    rights: Mutex<Known>,
    tasks: TaskTracker,
}

/// The only session, and the deadline, of all that one request of a page needs.
struct Bounds {
    session: Session,
    until: Instant,
}

/// Answers about rights.
#[derive(Default)]
struct Known {
    /// The number of the session that they are of.
    session: u64,
    /// By namespace and host; without a host for all of the namespace.
    answers: BTreeMap<(String, String), (bool, Instant)>,
}

impl Known {
    /// Those of a session; of an older one none is left.
    fn of(&mut self, session: u64) -> &mut BTreeMap<(String, String), (bool, Instant)> {
        if self.session < session {
            *self = Self {
                session,
                answers: BTreeMap::new(),
            };
        }
        &mut self.answers
    }
}

impl Acting {
    pub(crate) fn new(login: Arc<Login>, clock: Arc<dyn Clock>, options: &crate::Options, announce: Announce) -> Self {
        Self {
            login,
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
        let may = self.may(namespace, name).await;
        let why = match (may, self.login.ended()) {
            _ if self.is_read_only => READ_ONLY.to_owned(),
            (_, Some(ended)) => ended.text(),
            (Ok(true), None) => String::new(),
            (Ok(false), None) => format!(
                "You may not change this host. Ask for the right to patch baremetalhosts; check it with: \
                 kubectl auth can-i patch {}.{}/{name} -n {namespace}",
                BareMetalHost::PLURAL,
                BareMetalHost::GROUP
            ),
            (Err(error), None) => format!("It is not known whether you may change this host: {error}"),
        };
        Rights {
            may: why.is_empty(),
            why,
            lab,
        }
    }

    async fn may(&self, namespace: &str, name: &str) -> Result<bool, String> {
        if self.is_read_only {
            return Ok(false);
        }
        let bounds = self.bounds()?;
        Ok(self.has_right(&bounds, (namespace, "")).await? || self.has_right(&bounds, (namespace, name)).await?)
    }

    async fn has_right(&self, bounds: &Bounds, (namespace, name): (&str, &str)) -> Result<bool, String> {
        let session = bounds.session.number;
        let place = (namespace.to_owned(), name.to_owned());
        let known = self.rights.lock().of(session).get(&place).copied();
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
        let (params, review) = (&PostParams::default(), &review);
        let asked = self.ask(bounds, |client| async move {
            let reviews = Api::<SelfSubjectAccessReview>::all(client);
            reviews.create(params, review).await
        });
        let answer = asked.await?;
        let may = answer.status.is_some_and(|status| status.allowed);
        let mut rights = self.rights.lock();
        // A later session has its own answers.
        if rights.session == session {
            let answers = rights.of(session);
            if answers.len() >= MOST_RIGHTS {
                answers.clear();
            }
            answers.insert(place, (may, Instant::now()));
        }
        Ok(may)
    }

    /// Those of a request of a page that comes now.
    fn bounds(&self) -> Result<Bounds, String> {
        let session = self.login.session().map_err(|ended| ended.refusal())?;
        let until = Instant::now() + PATIENCE;
        Ok(Bounds { session, until })
    }

    /// The result of a request, or why there is none. Once more, if it was not sent or not accepted because of a login that is accepted.
    async fn ask<T, F>(&self, Bounds { session, until }: &Bounds, request: impl Fn(Client) -> F) -> Result<T, String>
    where
        F: Future<Output = kube::Result<T>>,
    {
        for is_last in [false, true] {
            let asked = tokio::select! {
                biased;
                () = self.login.over(session.number) => return Err(self.refusal()),
                asked = timeout_at(*until, request(session.client.clone())) => asked,
            };
            let error = match asked {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => return Err(LATE.to_owned()),
            };
            if !is_of_login(&error) {
                if is_silence(&error) {
                    self.login.doubt();
                }
                return Err(public_text(&error.to_string()));
            }
            let checked = timeout_at(*until, self.login.check(session.number)).await;
            let is_accepted = checked.map_err(|_| LATE.to_owned())?;
            if is_last || !is_accepted {
                break;
            }
        }
        Err(self.refusal())
    }

    /// Why nothing is sent in a session that is over, or whose login is not accepted.
    fn refusal(&self) -> String {
        let ended = self.login.ended();
        ended.map_or_else(|| NOT_ACCEPTED.to_owned(), |ended| ended.refusal())
    }

    /// Does what a page asks for as a task of its own: what was sent is followed to its end, and announced, also when the page is closed
    /// meanwhile. Nothing is sent for a page that is closed.
    pub(crate) async fn act_to_the_end(self: &Arc<Self>, wanted: Wanted) -> Option<Done> {
        let (own, closed) = (Arc::clone(self), CancellationToken::new());
        let _page = closed.clone().drop_guard();
        let done = self.tasks.spawn(async move { own.act(&wanted, &closed).await });
        done.await.ok()
    }

    /// Does it, and has it printed.
    async fn act(&self, wanted: &Wanted, closed: &CancellationToken) -> Done {
        let of_lab = self
            .lab
            .as_ref()
            .filter(|_| wanted.action.starts_with(crate::lab::PREFIX));
        let result = match of_lab {
            Some(lab) => {
                let done = lab.act(&wanted.namespace, &wanted.name, &wanted.action).await;
                done.map(|()| "Done.".to_owned())
            }
            None if self.is_read_only => Err(READ_ONLY.to_owned()),
            None => self.change(wanted, closed).await,
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
        (self.announce)(&Notice::Action(&line_of(&line)));
        Done { done, text }
    }

    async fn change(&self, wanted: &Wanted, closed: &CancellationToken) -> Result<String, String> {
        let bounds = self.bounds()?;
        for _ in 0..TRIES {
            let read = |client| async move { hosts(client, &wanted.namespace).get(&wanted.name).await };
            let host = self.ask(&bounds, read).await?;
            let host = serde_json::to_value(host).map_err(|error| error.to_string())?;
            let patch = patch(&host, wanted).map_err(|refusal| refusal.text().to_owned())?;
            if closed.is_cancelled() {
                return Err(CLOSED.to_owned());
            }
            match self.send(&bounds, wanted, &patch).await {
                Ok(()) => return Ok("Done: the host is changed, and this page follows what becomes of it.".to_owned()),
                // The host has another version now.
                Err(Failure::Conflict) => {}
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        Err(Refusal::NotNow.text().to_owned())
    }

    async fn send(&self, Bounds { session, until }: &Bounds, wanted: &Wanted, patch: &Value) -> Result<(), Failure> {
        if !self.login.is_live(session.number) {
            return Err(Failure::Other(self.refusal()));
        }
        // A request is begun even if no time is left for its answer.
        if Instant::now() >= *until {
            return Err(Failure::Other(LATE.to_owned()));
        }
        let hosts = hosts(session.client.clone(), &wanted.namespace);
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let sent = timeout_at(*until, hosts.patch(&wanted.name, &params, &patch)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Failure::Conflict),
            Ok(Err(error)) if is_of_login(&error) => {
                // Only for the words: with or without them, it was not accepted.
                let _ = timeout_at(*until, self.login.check(session.number)).await;
                Err(Failure::Other(self.refusal()))
            }
            Ok(Err(error)) => {
                if matches!(&error, kube::Error::Api(status) if status.code == 403) {
                    self.rights.lock().answers.clear();
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
}

fn hosts(client: Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: BareMetalHost::GROUP.to_owned(),
        version: BareMetalHost::VERSION.to_owned(),
        api_version: format!("{}/{}", BareMetalHost::GROUP, BareMetalHost::VERSION),
        kind: BareMetalHost::KIND.to_owned(),
        plural: BareMetalHost::PLURAL.to_owned(),
    };
    Api::namespaced_with(client, namespace, &resource)
}

/// Why a patch has no result.
enum Failure {
    Conflict,
    Other(String),
}

#[cfg(test)]
#[path = "acting_tests.rs"]
mod tests;
