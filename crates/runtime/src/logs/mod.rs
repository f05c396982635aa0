//! Logs as text or JSON, with a level that can change at run time.
//!
//! [`subscriber`] creates the subscriber of a program; `main` installs it. [`Verbosity`] is the handle for the admin
//! server.
//!
//! The invariant: no level shows the log lines of the Kubernetes client about responses that it cannot decode. They
//! quote the body, which may be a Secret. The error is returned and logged by the caller, without content.

use std::fmt;
use std::io;
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer, Registry, reload};

/// The log format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The log level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The user has to act.
    Error,
    /// May become an error.
    Warn,
    /// What happens.
    #[default]
    Info,
    /// Why.
    Debug,
    /// Everything.
    Trace,
}

/// Not a level or verbosity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("log level: {0:?} is not valid; use error, warn, info, debug, trace, or a verbosity from 0 to 10")]
pub struct NoLevel(String);

/// Not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--logging-format: {0:?} is not valid; use text or json")]
pub struct NoFormat(String);

impl FromStr for Format {
    type Err = NoFormat;

    fn from_str(text: &str) -> Result<Self, NoFormat> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(NoFormat(text.to_owned())),
        }
    }
}

impl FromStr for Level {
    type Err = NoLevel;

    /// By name, or by the number of the Go managers' flag `--v`.
    fn from_str(text: &str) -> Result<Self, NoLevel> {
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            "trace" => Ok(Self::Trace),
            _ => match text.parse::<u8>() {
                Ok(0..=3) => Ok(Self::Info),
                Ok(4..=5) => Ok(Self::Debug),
                Ok(6..=10) => Ok(Self::Trace),
                Ok(_) | Err(_) => Err(NoLevel(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        })
    }
}

/// Changes the level at run time; clones share it.
#[derive(Debug, Clone)]
pub struct Verbosity {
    handle: reload::Handle<Targets, Registry>,
}

impl Verbosity {
    /// Sets the level.
    pub fn set(&self, level: Level) {
        // Fails only without a subscriber, and then there are no logs.
        drop(self.handle.reload(targets(level)));
    }

    /// The current level; `info` without a subscriber.
    #[must_use]
    pub fn get(&self) -> Level {
        let filter = self.handle.with_current(Targets::default_level);
        match filter.ok().flatten().map(LevelFilter::into_level) {
            Some(Some(tracing::Level::ERROR)) => Level::Error,
            Some(Some(tracing::Level::WARN)) => Level::Warn,
            Some(Some(tracing::Level::DEBUG)) => Level::Debug,
            Some(Some(tracing::Level::TRACE)) => Level::Trace,
            Some(Some(tracing::Level::INFO) | None) | None => Level::Info,
        }
    }
}

/// A subscriber that writes lines, and the handle of its level.
pub fn subscriber<W>(format: Format, level: Level, writer: W) -> (impl Subscriber + Send + Sync, Verbosity)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(targets(level));
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    let subscriber = Registry::default().with(filter.and_then(lines));
    (subscriber, Verbosity { handle })
}

/// Logs to standard error.
///
/// # Errors
/// When another subscriber is installed already.
pub fn install(format: Format, level: Level) -> Result<Verbosity, tracing::subscriber::SetGlobalDefaultError> {
    let (subscriber, verbosity) = subscriber(format, level, io::stderr);
    tracing::subscriber::set_global_default(subscriber)?;
    Ok(verbosity)
}

fn targets(level: Level) -> Targets {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    let quieter = level.min(LevelFilter::WARN);
    let libraries = ["h2", "hyper", "hyper_util", "rustls", "tower"].map(|target| (target, quieter));
    Targets::new()
        .with_default(level)
        .with_targets(libraries)
        .with_target("kube_client", LevelFilter::OFF)
}

#[cfg(test)]
pub(crate) mod tests;
