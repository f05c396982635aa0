//! A registry of a few images, which requires a login for a token: what Ironic and agents read of one.
//!
//! It listens on loopback, without TLS: Ironic needs `permit_fallback_to_http_transport`.

use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metal3_ironic_life::order::sha256;
use metal3_sim_bmc::redfish::{Credentials, secret};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const USERNAME: &str = "puller";
pub(crate) const PASSWORD: &str = "a0b1c2d3e4";
const NAME: &str = "team/os";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A running registry. Dropping it stops it.
pub(crate) struct Registry {
    /// `ADDRESS:PORT`.
    pub(crate) host: String,
    content: Arc<Content>,
    server: JoinSet<std::io::Result<()>>,
}

struct Content {
    host: String,
    login: Credentials,
    /// What the token service returns.
    token: String,
    artifacts: Vec<Artifact>,
}

/// An image, tagged with its index.
struct Artifact {
    manifest: String,
    /// Of the manifest.
    digest: String,
    blob: Vec<u8>,
    blob_digest: String,
}

impl Registry {
    /// A registry of artifacts with these bytes, in the format `raw`.
    pub(crate) async fn start(blobs: Vec<Vec<u8>>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        let token = secret().map_err(|_| anyhow::anyhow!("the system returns no random bytes"))?;
        let content = Arc::new(Content {
            host: host.clone(),
            login: Credentials {
                username: USERNAME.to_owned(),
                password: PASSWORD.to_owned(),
            },
            token,
            artifacts: blobs.into_iter().map(Artifact::of).collect(),
        });
        let mut server = JoinSet::new();
        let routes = routes(Arc::clone(&content));
        server.spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { host, content, server })
    }

    /// The image of an index, which may become another one.
    pub(crate) fn by_tag(&self, index: usize) -> String {
        format!("oci://{}/{NAME}:v{index}", self.host)
    }

    /// The image of an index, which cannot change.
    pub(crate) fn by_digest(&self, index: usize) -> anyhow::Result<String> {
        let artifact = self.content.artifacts.get(index).context("no such image")?;
        Ok(format!("oci://{}/{NAME}@{}", self.host, artifact.digest))
    }

    pub(crate) async fn stop(mut self) {
        self.server.shutdown().await;
    }
}

impl Content {
    fn tags(&self) -> Vec<String> {
        (0..self.artifacts.len()).map(|index| format!("v{index}")).collect()
    }

    /// The refusal of a request without the token.
    fn refuse(&self, headers: &HeaderMap) -> Option<Response> {
        let expected = format!("Bearer {}", self.token);
        let given = headers.get(header::AUTHORIZATION);
        let is_right = given.is_some_and(|given| given.as_bytes() == expected.as_bytes());
        let challenge = format!("Bearer realm=\"http://{}/token\",service=\"registry\"", self.host);
        let challenge = [(header::WWW_AUTHENTICATE, challenge)];
        (!is_right).then(|| (StatusCode::UNAUTHORIZED, challenge).into_response())
    }
}

impl Artifact {
    /// An artifact of one file, as ORAS stores it.
    fn of(blob: Vec<u8>) -> Self {
        let digest = |bytes: &[u8]| format!("sha256:{}", sha256(bytes));
        let blob_digest = digest(&blob);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.example.disk",
            "config": { "mediaType": EMPTY, "digest": digest(b"{}"), "size": 2 },
            "layers": [{
                "mediaType": "application/octet-stream",
                "digest": blob_digest,
                "size": blob.len(),
                "annotations": { "org.opencontainers.image.title": "disk.raw" },
            }],
            "annotations": { "disktype": "raw" },
        });
        let manifest = manifest.to_string();
        Self {
            digest: digest(manifest.as_bytes()),
            manifest,
            blob,
            blob_digest,
        }
    }
}

type Shared = State<Arc<Content>>;

fn routes(content: Arc<Content>) -> Router {
    Router::new()
        .route("/token", get(token))
        .route("/v2/", get(root))
        .route(&format!("/v2/{NAME}/tags/list"), get(tags))
        .route(&format!("/v2/{NAME}/manifests/{{reference}}"), get(one_manifest))
        .route(&format!("/v2/{NAME}/blobs/{{digest}}"), get(blob))
        .with_state(content)
}

async fn token(State(content): Shared, headers: HeaderMap) -> Response {
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    if content.login.admit(given) {
        Json(json!({ "token": content.token })).into_response()
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

async fn root(State(content): Shared, headers: HeaderMap) -> Response {
    content
        .refuse(&headers)
        .unwrap_or_else(|| Json(json!({})).into_response())
}

async fn tags(State(content): Shared, headers: HeaderMap) -> Response {
    let tags = || Json(json!({ "name": NAME, "tags": content.tags() })).into_response();
    content.refuse(&headers).unwrap_or_else(tags)
}

async fn one_manifest(State(content): Shared, Path(reference): Path<String>, headers: HeaderMap) -> Response {
    if let Some(refusal) = content.refuse(&headers) {
        return refusal;
    }
    let tagged = content.tags().into_iter().zip(&content.artifacts);
    let found = tagged
        .into_iter()
        .find(|(tag, artifact)| [tag, &artifact.digest].contains(&&reference));
    let Some((_, artifact)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let about = [
        (header::CONTENT_TYPE, MANIFEST.to_owned()),
        (
            HeaderName::from_static("docker-content-digest"),
            artifact.digest.clone(),
        ),
    ];
    (about, artifact.manifest.clone()).into_response()
}

async fn blob(State(content): Shared, Path(digest): Path<String>, headers: HeaderMap) -> Response {
    if let Some(refusal) = content.refuse(&headers) {
        return refusal;
    }
    let found = content.artifacts.iter().find(|artifact| artifact.blob_digest == digest);
    found.map_or_else(
        || StatusCode::NOT_FOUND.into_response(),
        |artifact| artifact.blob.clone().into_response(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    async fn status(http: &reqwest::Client, url: &str, login: Option<(&str, &str)>) -> (u16, String) {
        let request = http.get(url);
        let request = match login {
            Some(("Bearer", token)) => request.bearer_auth(token),
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        };
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap())
    }

    /// As Ironic and agents read an image.
    #[tokio::test]
    async fn image_is_read_with_a_token_which_requires_the_login() {
        // Fails where it is installed.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::new();
        let registry = Registry::start(vec![b"other".to_vec(), b"disk".to_vec()])
            .await
            .unwrap();
        let at = |path: &str| format!("http://{}{path}", registry.host);
        let image = at("/v2/team/os");
        for path in [
            at("/v2/"),
            format!("{image}/tags/list"),
            format!("{image}/manifests/v1"),
        ] {
            assert_eq!(status(&http, &path, None).await.0, 401, "{path}");
        }
        assert_eq!(status(&http, &at("/token"), None).await.0, 401);
        assert_eq!(status(&http, &at("/token"), Some((USERNAME, "other"))).await.0, 401);
        let (code, text) = status(&http, &at("/token"), Some((USERNAME, PASSWORD))).await;
        assert_eq!(code, 200);
        let token: Value = serde_json::from_str(&text).unwrap();
        let token = token["token"].as_str().unwrap();
        let token = Some(("Bearer", token));
        let (_, by_tag) = status(&http, &format!("{image}/manifests/v1"), token).await;
        let digest = registry.by_digest(1).unwrap();
        let digest = digest.split_once('@').unwrap().1;
        let (_, by_digest) = status(&http, &format!("{image}/manifests/{digest}"), token).await;
        assert_eq!(by_tag, by_digest);
        let manifest: Value = serde_json::from_str(&by_tag).unwrap();
        let layer = manifest["layers"][0]["digest"].as_str().unwrap();
        let blob = format!("{image}/blobs/{layer}");
        assert_eq!(status(&http, &blob, None).await.0, 401);
        assert_eq!(status(&http, &blob, token).await, (200, "disk".to_owned()));
        assert_eq!(status(&http, &format!("{image}/blobs/other"), token).await.0, 404);
        registry.stop().await;
    }
}
