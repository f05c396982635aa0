//! The lines on record of what may erase.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::lab::{Lab, Setup};
use crate::story::Phase;
use crate::tap::Blow;

/// A log that can be read back.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What was put on record of a request, in order.
fn on_record(log: &Log, verb: &str) -> Vec<String> {
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let says = |line: &Value, at: &str| line.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_verb = lines.filter(|line| says(line, "/target") == "audit" && says(line, "/fields/verb") == verb);
    of_verb.map(|line| says(&line, "/fields/message")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_harmful_request_whose_answer_is_lost_is_on_record_all_the_same() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let lab = Lab::new(Setup::default());
    for phase in [Phase::Enrol, Phase::Provision] {
        phase.begin(&lab, 1).await;
        phase.end(&lab, 1).await;
    }
    assert_eq!(on_record(&log, "deleted"), <[&str; 0]>::default());
    {
        let mut book = lab.tap.book();
        // Behind the look at the node.
        book.blow = Some((book.asked.len() + 2, Blow::ReplyLost));
    }
    lab.edit(1, json!({ "spec": { "image": null } })).await;
    lab.until_state(1, "available").await;
    let lines = on_record(&log, "deleted");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("perhaps done") && line.contains("the removal of spec.image"))
    );
}
