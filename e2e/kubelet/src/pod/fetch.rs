//! Reads the objects that a Pod refers to. A missing object is a result, a failed request an error.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use tokio::time::Instant;

use crate::clock::{self, bounded};
use crate::context::Context;
use crate::plan::sources::{Data, Sources, Token, needs};

/// Caches a Pod's tokens until they are renewed.
#[derive(Default)]
pub(crate) struct Fetcher {
    tokens: BTreeMap<Token, Issued>,
}

struct Issued {
    bytes: Vec<u8>,
    renew_at: Instant,
}

impl Fetcher {
    pub(crate) async fn fetch(&mut self, cx: &Context, pod: &Pod) -> anyhow::Result<Sources> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let needs = needs(pod);
        let mut sources = Sources::default();
        let secrets: Api<Secret> = Api::namespaced(cx.client.clone(), namespace);
        for name in needs.secrets {
            if let Some(secret) = bounded(secrets.get_opt(&name)).await? {
                let data = secret
                    .data
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(key, value)| (key, value.0));
                sources.secrets.insert(name, data.collect());
            }
        }
        let maps: Api<ConfigMap> = Api::namespaced(cx.client.clone(), namespace);
        for name in needs.config_maps {
            if let Some(map) = bounded(maps.get_opt(&name)).await? {
                let mut data: Data = map
                    .binary_data
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(k, v)| (k, v.0))
                    .collect();
                data.extend(
                    map.data
                        .unwrap_or_default()
                        .into_iter()
                        .map(|(key, text)| (key, text.into_bytes())),
                );
                sources.config_maps.insert(name, data);
            }
        }
        for token in needs.tokens {
            let bytes = self.token(cx, pod, &token).await?;
            sources.tokens.insert(token, bytes);
        }
        Ok(sources)
    }

    async fn token(&mut self, cx: &Context, pod: &Pod, token: &Token) -> anyhow::Result<Vec<u8>> {
        let now = clock::instant();
        if let Some(issued) = self.tokens.get(token).filter(|issued| now < issued.renew_at) {
            return Ok(issued.bytes.clone());
        }
        let bytes = request(cx, pod, token).await?;
        let task = Duration::from_secs(u64::try_from(token.seconds).unwrap_or_default());
        let renew_at = now + (task * 4 / 5).min(cx.limits.token_age);
        self.tokens.insert(
            token.clone(),
            Issued {
                bytes: bytes.clone(),
                renew_at,
            },
        );
        Ok(bytes)
    }
}

/// Requests a token that is valid as long as the Pod exists.
async fn request(cx: &Context, pod: &Pod, token: &Token) -> anyhow::Result<Vec<u8>> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let account = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref())
        .unwrap_or("default");
    let wanted = TokenRequest {
        spec: TokenRequestSpec {
            audiences: token.audience.iter().cloned().collect(),
            expiration_seconds: Some(token.seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
        },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(cx.client.clone(), namespace);
    let parameters = PostParams::default();
    let answer: TokenRequest = bounded(accounts.create_subresource("token", account, &parameters, &wanted)).await?;
    Ok(answer
        .status
        .map(|status| status.token.into_bytes())
        .unwrap_or_default())
}
