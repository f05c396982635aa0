//! Audit lines of requests that may erase.

use std::io;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

use crate::env::{Setup, TestEnv};
use crate::interceptor::IronicFault;
use crate::phases::Phase;

#[derive(Debug, Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn audit_lines(output: &Output, verb: &str) -> Vec<String> {
    let text = String::from_utf8(output.0.lock().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |line: &Value, at: &str| line.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_verb = lines.filter(|line| text(line, "/target") == "audit" && text(line, "/fields/verb") == verb);
    of_verb.map(|line| text(&line, "/fields/message")).collect()
}

#[tokio::test(start_paused = true)]
async fn disruptive_request_with_lost_response_is_audited() {
    // With one subscriber only, a line that a thread of another test reaches first is switched off for all threads.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
    let output = Output::default();
    let writer = output.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let env = TestEnv::new(Setup::default());
    for phase in [Phase::Enrol, Phase::Provision] {
        phase.begin(&env, 1).await;
        phase.end(&env, 1).await;
    }
    assert_eq!(audit_lines(&output, "deleted"), <[&str; 0]>::default());
    {
        let mut requests = env.interceptor.log();
        // After the read of the node.
        requests.fault = Some((requests.asked.len() + 2, IronicFault::ReplyLost));
    }
    env.edit(1, json!({ "spec": { "image": null } })).await;
    env.until_state(1, "available").await;
    let lines = audit_lines(&output, "deleted");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("perhaps done") && line.contains("the removal of spec.image"))
    );
}
