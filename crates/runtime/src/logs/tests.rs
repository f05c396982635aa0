use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

use super::*;

/// A writer that keeps the log.
#[derive(Clone)]
pub(crate) struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Default for LogBuffer {
    fn default() -> Self {
        // With one subscriber only, a line that a thread of another test reaches first is switched off for all threads.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
        Self(Arc::default())
    }
}

impl LogBuffer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(format: Format, level: Level, log: impl FnOnce(&Verbosity)) -> String {
    let buffer = LogBuffer::default();
    let writer = buffer.clone();
    let (subscriber, verbosity) = subscriber(format, level, move || writer.clone());
    tracing::subscriber::with_default(subscriber, || log(&verbosity));
    buffer.text()
}

#[test]
fn the_level_changes_while_the_program_runs() {
    let text = written(Format::Text, Level::INFO, |verbosity| {
        tracing::debug!("one");
        verbosity.set(Level::DEBUG);
        assert_eq!(verbosity.get(), Level::DEBUG);
        tracing::debug!("two");
        verbosity.set(Level::ERROR);
        tracing::warn!("three");
        tracing::error!("four");
    });
    let seen = ["one", "two", "three", "four"].map(|word| text.contains(word));
    assert_eq!(seen, [false, true, false, true], "{text}");
}

#[test]
fn every_level_is_shown_as_it_was_set() {
    written(Format::Text, Level::INFO, |verbosity| {
        for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
            verbosity.set(level);
            assert_eq!(verbosity.get(), level);
            assert_eq!(level.to_string().parse(), Ok(level));
        }
    });
}

#[test]
fn json_is_one_object_a_line_with_the_fields_at_its_top() {
    let text = written(Format::Json, Level::INFO, |_| {
        tracing::info!(host = "n1", "a \"quoted\" word\nand more")
    });
    assert_eq!(text.lines().count(), 1);
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(line["message"], "a \"quoted\" word\nand more");
    assert_eq!((&line["host"], &line["level"]), (&"n1".into(), &"INFO".into()));
}

#[test]
fn no_level_shows_responses_that_the_client_could_not_decode() {
    let text = written(Format::Text, Level::TRACE, |_| {
        tracing::warn!(target: "kube_client::client", "{{\"kind\":\"Secret\",\"data\":\"c2VjcmV0\"}}, expected `,`");
        tracing::error!(target: "kube_client", "the same");
        tracing::warn!(target: "metal3", "visible");
    });
    assert!(!text.contains("Secret") && text.contains("visible"), "{text}");
}

#[test]
fn libraries_log_less_than_the_program() {
    let text = written(Format::Text, Level::TRACE, |_| {
        tracing::debug!(target: "hyper::proto", "chatter");
        tracing::warn!(target: "h2", "failure");
    });
    assert!(!text.contains("chatter") && text.contains("failure"), "{text}");
}

#[test]
fn verbosities_of_the_go_managers_are_levels() {
    let rows = [
        ("0", Level::INFO),
        ("2", Level::INFO),
        ("4", Level::DEBUG),
        ("5", Level::DEBUG),
        ("10", Level::TRACE),
    ];
    for (text, level) in rows {
        assert_eq!(text.parse(), Ok(level), "{text}");
    }
    for text in ["", "11", "-1", "DEBUG", "verbose"] {
        assert!(text.parse::<Level>().is_err(), "{text}");
    }
    assert_eq!("json".parse(), Ok(Format::Json));
    assert!(
        "yaml"
            .parse::<Format>()
            .unwrap_err()
            .to_string()
            .contains("text or json")
    );
}
