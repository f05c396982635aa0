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
    /// One JSON object per line.
    Json,
}

/// The log level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(LevelFilter);

impl Level {
    /// The user has to act.
    pub const ERROR: Self = Self(LevelFilter::ERROR);
    /// May become an error.
    pub const WARN: Self = Self(LevelFilter::WARN);
    /// What happens.
    pub const INFO: Self = Self(LevelFilter::INFO);
    /// Why.
    pub const DEBUG: Self = Self(LevelFilter::DEBUG);
    /// Everything.
    pub const TRACE: Self = Self(LevelFilter::TRACE);
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
            "error" => Ok(Self::ERROR),
            "warn" => Ok(Self::WARN),
            "info" => Ok(Self::INFO),
            "debug" => Ok(Self::DEBUG),
            "trace" => Ok(Self::TRACE),
            _ => match text.parse::<u8>() {
                Ok(0..=3) => Ok(Self::INFO),
                Ok(4..=5) => Ok(Self::DEBUG),
                Ok(6..=10) => Ok(Self::TRACE),
                Ok(_) | Err(_) => Err(NoLevel(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
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
        filter.ok().flatten().map_or(Level::INFO, Level)
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

fn targets(Level(level): Level) -> Targets {
    let quieter = level.min(LevelFilter::WARN);
    let libraries = ["h2", "hyper", "hyper_util", "rustls", "tower"].map(|target| (target, quieter));
    Targets::new()
        .with_default(level)
        .with_targets(libraries)
        .with_target("kube_client", LevelFilter::OFF)
}

#[cfg(test)]
pub(crate) mod tests;
