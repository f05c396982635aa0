//! Logs: one file per run of a container, and the log endpoint of the kubelet's API for `kubectl logs`.
//!
//! Lines have no times, so queries by time are rejected.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};

/// The query parameters of `kubectl logs`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Query {
    pub(crate) follow: bool,
    pub(crate) previous: bool,
    pub(crate) tail_lines: Option<usize>,
    pub(crate) limit_bytes: Option<u64>,
    timestamps: bool,
    since_seconds: Option<String>,
    since_time: Option<String>,
}

impl Query {
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        let about_time = self.timestamps || self.since_seconds.is_some() || self.since_time.is_some();
        about_time.then_some(
            "the process kubelet records no times of lines: --timestamps, --since and --since-time are not supported",
        )
    }
}

/// Directory of a container's logs.
fn folder(logs: &Path, namespace: &str, pod: &str, container: &str) -> PathBuf {
    logs.join(format!("{namespace}_{pod}")).join(container)
}

/// The log of one run; run 0 is the first start.
pub(crate) fn path(logs: &Path, pod: &Pod, container: &str, run: i32) -> PathBuf {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    folder(logs, namespace, name, container).join(format!("{run}.log"))
}

/// The newest log, or the one before it.
pub(crate) fn find(logs: &Path, namespace: &str, pod: &str, container: &str, previous: bool) -> Option<PathBuf> {
    let folder = folder(logs, namespace, pod, container);
    let entries = std::fs::read_dir(&folder).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut runs: Vec<u32> = names
        .filter_map(|name| name.strip_suffix(".log")?.parse().ok())
        .collect();
    runs.sort_unstable_by(|one, other| other.cmp(one));
    let run = runs.get(usize::from(previous))?;
    Some(folder.join(format!("{run}.log")))
}

/// The offset of the last `lines` lines of a text.
pub(crate) fn tail_start(text: &[u8], lines: usize) -> usize {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    if lines == 0 {
        return text.len();
    }
    let ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at.saturating_add(1))
        .nth(lines.saturating_sub(1))
        .unwrap_or(0)
}

/// The response: the current content, followed by appended lines until the container restarts or the client disconnects.
pub(crate) async fn body(path: PathBuf, query: &Query) -> std::io::Result<Body> {
    let mut text = tokio::fs::read(&path).await?;
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if let Some(lines) = query.tail_lines {
        text.drain(..tail_start(&text, lines));
    }
    if let Some(limit) = query.limit_bytes.and_then(|limit| usize::try_from(limit).ok()) {
        text.truncate(limit);
    }
    if !query.follow {
        return Ok(Body::from(text));
    }
    let mut file = File::open(&path).await?;
    file.seek(SeekFrom::Start(length)).await?;
    let follower = Follower {
        file,
        path,
        first: Some(text),
    };
    Ok(Body::from_stream(stream::unfold(follower, Follower::next)))
}

struct Follower {
    file: File,
    path: PathBuf,
    first: Option<Vec<u8>>,
}

const POLL: Duration = Duration::from_millis(200);

impl Follower {
    async fn next(mut self) -> Option<(std::io::Result<Bytes>, Self)> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Some((Ok(Bytes::from(first)), self));
        }
        loop {
            let mut chunk = vec![0; 16 * 1024];
            match self.file.read(&mut chunk).await {
                Ok(0) if self.is_superseded() => return None,
                Ok(0) => tokio::time::sleep(POLL).await,
                Ok(count) => {
                    chunk.truncate(count);
                    return Some((Ok(Bytes::from(chunk)), self));
                }
                Err(error) => return Some((Err(error), self)),
            }
        }
    }

    /// A later run has its own file; a deleted Pod has none.
    fn is_superseded(&self) -> bool {
        let run: Option<u32> = self.path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let next = run.map(|run| self.path.with_file_name(format!("{}.log", run.saturating_add(1))));
        next.is_some_and(|next| next.exists()) || !self.path.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_counts_lines_from_the_end() {
        let table = [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 1, "c"),
            ("a\n", 5, "a\n"),
            ("a\nb\n", 0, ""),
            ("", 3, ""),
        ];
        for (text, lines, tail) in table {
            assert_eq!(
                &text.as_bytes()[tail_start(text.as_bytes(), lines)..],
                tail.as_bytes(),
                "{text:?} {lines}"
            );
        }
    }

    #[test]
    fn queries_by_time_are_rejected() {
        let is_refused = |text: &str| serde_json::from_str::<Query>(text).unwrap().refusal().is_some();
        assert!(is_refused(r#"{"timestamps": true}"#));
        assert!(is_refused(r#"{"sinceSeconds": "5"}"#));
        assert!(!is_refused(r#"{"follow": true, "tailLines": 3}"#));
    }
}
