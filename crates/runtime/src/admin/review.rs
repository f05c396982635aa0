//! Reviews callers with the API server.

use std::collections::BTreeMap;
use std::fmt;

use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use secrecy::{ExposeSecret as _, SecretString};

use crate::access::{Permits, verb};

/// The decision about a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessDecision {
    /// The caller is allowed.
    Allowed,
    /// The token is not valid.
    Unauthenticated,
    /// The caller is known and not allowed.
    Denied {
        /// The user name.
        user: String,
    },
}

/// Decides about callers.
pub trait Reviewer: fmt::Debug + Send + Sync {
    /// Whether the owner of `token` may do `verb` on the path.
    fn review<'a>(
        &'a self,
        token: &'a SecretString,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, kube::Result<AccessDecision>>;
}

/// Reviews with TokenReview and SubjectAccessReview.
///
/// A role without both permissions does not compile:
///
/// ```compile_fail,E0277
/// # use metal3_runtime::admin::ClusterReviewer;
/// # use k8s_openapi::api::authentication::v1::TokenReview;
/// metal3_runtime::role! {
///     /// Finds out who calls, and not what they may.
///     pub struct Asking {
///         TokenReview: Create;
///     }
/// }
/// # fn start(client: &kube::Client) {
/// ClusterReviewer::new::<Asking>(client);
/// # }
/// ```
#[derive(Debug)]
pub struct ClusterReviewer {
    tokens: Api<TokenReview>,
    accesses: Api<SubjectAccessReview>,
}

impl ClusterReviewer {
    /// Reviews through this client.
    #[must_use]
    pub fn new<R>(client: &Client) -> Self
    where
        R: Permits<verb::Create, TokenReview> + Permits<verb::Create, SubjectAccessReview>,
    {
        Self {
            tokens: Api::all(client.clone()),
            accesses: Api::all(client.clone()),
        }
    }

    async fn caller(&self, token: &SecretString) -> kube::Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.expose_secret().to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let answer = self.tokens.create(&PostParams::default(), &review).await?;
        let status = answer.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn may(&self, user: UserInfo, verb: &str, path: &str) -> kube::Result<bool> {
        let path = NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some(verb.to_owned()),
        };
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(path),
            ..of_user(user)
        };
        is_allowed(&self.accesses, spec).await
    }
}

fn of_user(user: UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra.map(BTreeMap::from_iter),
        ..SubjectAccessReviewSpec::default()
    }
}

async fn is_allowed(accesses: &Api<SubjectAccessReview>, spec: SubjectAccessReviewSpec) -> kube::Result<bool> {
    let review = SubjectAccessReview {
        spec,
        ..SubjectAccessReview::default()
    };
    let answer = accesses.create(&PostParams::default(), &review).await?;
    // A denial overrides an allowance.
    Ok(answer
        .status
        .is_some_and(|status| status.allowed && status.denied != Some(true)))
}

/// Reviews the rights of known users with SubjectAccessReview.
#[derive(Debug)]
pub struct SubjectReviewer {
    accesses: Api<SubjectAccessReview>,
}

impl SubjectReviewer {
    /// Reviews through this client.
    #[must_use]
    pub fn new<R: Permits<verb::Create, SubjectAccessReview>>(client: &Client) -> Self {
        Self {
            accesses: Api::all(client.clone()),
        }
    }

    /// Whether a user has a right on a resource.
    ///
    /// # Errors
    /// When the API server does not answer: the right is unknown.
    pub async fn may(&self, user: UserInfo, right: ResourceAttributes) -> kube::Result<bool> {
        let spec = SubjectAccessReviewSpec {
            resource_attributes: Some(right),
            ..of_user(user)
        };
        is_allowed(&self.accesses, spec).await
    }
}

impl Reviewer for ClusterReviewer {
    fn review<'a>(
        &'a self,
        token: &'a SecretString,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, kube::Result<AccessDecision>> {
        Box::pin(async move {
            let Some(user) = self.caller(token).await? else {
                return Ok(AccessDecision::Unauthenticated);
            };
            let name = user.username.clone().unwrap_or_default();
            Ok(if self.may(user, verb, path).await? {
                AccessDecision::Allowed
            } else {
                AccessDecision::Denied { user: name }
            })
        })
    }
}
