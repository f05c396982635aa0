//! Parses arguments by the table. All errors are reported at once: a Deployment is edited once.

use std::collections::BTreeMap;

use super::flag::{Flag, Handling, Owner, Shape};
use super::options::Options;
use super::table::{TABLE, find};

/// Result of parsing.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Run with these options.
    Run(Box<Options>),
    /// Print the help, which has the flags alone, and exit.
    Help(String),
    /// Print the version and exit.
    Version(String),
}

/// An invalid argument, with the flag and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// Unknown flag.
    #[error("--{0}: there is no such flag; --help lists them")]
    Unknown(String),
    /// Not a flag.
    #[error("{0:?}: is no flag, and no command that --help lists; flags are such as --controllers=ipam")]
    NotAFlag(String),
    /// Missing value.
    #[error("--{0}: needs a value; write --{0}=VALUE")]
    MissingValue(&'static str),
    /// Invalid value.
    #[error("--{flag}: {value:?} is not {wanted}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// Given value.
        value: String,
        /// Expected value.
        wanted: String,
    },
    /// Invalid value of an environment variable.
    #[error("{variable}: {value:?} is not a whole number of seconds")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// Given value.
        value: String,
    },
    /// Unsupported.
    #[error("--{flag}: {why}")]
    Refused {
        /// The flag.
        flag: &'static str,
        /// Reason.
        why: String,
    },
}

/// Given values by flag, and warnings.
#[derive(Debug, Default)]
pub(super) struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
    warnings: Vec<String>,
}

impl Given {
    /// The last given value of a flag, or its default.
    pub(super) fn text(&self, name: &'static str) -> String {
        let given = self.values.get(name).and_then(|values| values.last());
        given.map_or_else(|| default(name).to_owned(), Clone::clone)
    }

    pub(super) fn switch(&self, name: &'static str) -> bool {
        self.text(name) == "true"
    }

    /// All values of a list, trimmed.
    pub(super) fn list(&self, name: &'static str) -> Vec<String> {
        let default = [default(name).to_owned()];
        let values = self.values.get(name).map_or(default.as_slice(), Vec::as_slice);
        let items = values.iter().flat_map(|value| value.split(','));
        items
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// The flag and the value of one argument.
    pub(super) fn single(&self) -> Option<(&'static str, String)> {
        let (flag, values) = self.values.first_key_value()?;
        Some((flag, values.first()?.clone()))
    }

    /// Warnings to log.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn default(name: &str) -> &'static str {
    find(name).map_or("", |flag| flag.default)
}

/// Environment variables that set the lease where no flag does: the variable, its flag, and the flag of the other
/// products with the same meaning.
const LEASE_VARIABLES: [(&str, &str, &str); 3] = [
    (
        "LEASE_DURATION_SECONDS",
        "lease-duration-seconds",
        "leader-elect-lease-duration",
    ),
    (
        "RENEW_DEADLINE_SECONDS",
        "renew-deadline-seconds",
        "leader-elect-renew-deadline",
    ),
    (
        "RETRY_PERIOD_SECONDS",
        "retry-period-seconds",
        "leader-elect-retry-period",
    ),
];

/// Parses the arguments, without the program name.
///
/// # Errors
/// Every invalid argument.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, Vec<FlagError>> {
    parse_with(arguments, |_| None)
}

/// The same, with the environment variables that are defaults of flags.
///
/// # Errors
/// Every invalid argument and variable.
pub fn parse_with(
    arguments: impl IntoIterator<Item = String>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Request, Vec<FlagError>> {
    let (mut given, mut errors) = (Given::default(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if let Err(error) = read(&argument, &mut arguments, &mut given) {
            errors.push(error);
        }
    }
    errors.extend(read_variables(variable, &mut given));
    if given.switch("help") {
        return Ok(Request::Help(help()));
    }
    if given.switch("version") {
        return Ok(Request::Version(format!("capm3 {}\n", crate::version::version())));
    }
    match Options::of(&given) {
        Ok(options) if errors.is_empty() => Ok(Request::Run(Box::new(options))),
        Ok(_) => Err(errors),
        Err(more) => {
            errors.extend(more);
            Err(errors)
        }
    }
}

/// Takes the lease from the environment where no flag sets it.
fn read_variables(variable: impl Fn(&str) -> Option<String>, given: &mut Given) -> Vec<FlagError> {
    let mut errors = Vec::new();
    for (name, flag, other) in LEASE_VARIABLES {
        let text = variable(name).map(|text| text.trim().to_owned());
        let Some(value) = text.filter(|text| !text.is_empty()) else {
            continue;
        };
        if value.parse::<u32>().is_err() {
            errors.push(FlagError::Variable { variable: name, value });
        } else if !given.values.contains_key(flag) && !given.values.contains_key(other) {
            given.values.insert(flag, vec![value]);
        }
    }
    errors
}

/// Parses one flag, and its value if that is the next argument.
pub(super) fn read(
    argument: &str,
    rest: &mut impl Iterator<Item = String>,
    given: &mut Given,
) -> Result<(), FlagError> {
    let stray = || FlagError::NotAFlag(argument.to_owned());
    let bare = argument
        .strip_prefix("--")
        .or_else(|| argument.strip_prefix('-'))
        .ok_or_else(stray)?;
    let (name, value) = match bare.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (bare, None),
    };
    if name.is_empty() {
        return Err(stray());
    }
    let name = if name == "h" { "help" } else { name };
    let flag = find(name).ok_or_else(|| FlagError::Unknown(name.to_owned()))?;
    let value = match (value, flag.shape) {
        (Some(value), _) => value,
        (None, Shape::Switch) => "true".to_owned(),
        (None, Shape::Text | Shape::List | Shape::Number | Shape::Span) => {
            rest.next().ok_or(FlagError::MissingValue(flag.name))?
        }
    };
    accept(flag, value, given)
}

fn accept(flag: &'static Flag, value: String, given: &mut Given) -> Result<(), FlagError> {
    let value = checked(flag, value)?;
    match flag.handling {
        Handling::Supported => given.values.entry(flag.name).or_default().push(value),
        Handling::Alias(other) => given.values.entry(other).or_default().push(value),
        Handling::Ignored(why) => given.warnings.push(format!("--{} does nothing: {why}", flag.name)),
        // The default value requests nothing.
        Handling::Refused(_) if value == flag.default => {}
        Handling::Refused(why) => {
            let owners: Vec<&str> = flag.owners.iter().copied().map(Owner::name).collect();
            return Err(FlagError::Refused {
                flag: flag.name,
                why: format!("is a flag of the controllers {}: {why}", owners.join(", ")),
            });
        }
    }
    Ok(())
}

/// Texts that Go reads as true.
pub const TRUE: [&str; 6] = ["1", "t", "T", "true", "TRUE", "True"];
/// Texts that Go reads as false.
pub const FALSE: [&str; 6] = ["0", "f", "F", "false", "FALSE", "False"];

/// The normalized value, if valid.
fn checked(flag: &'static Flag, value: String) -> Result<String, FlagError> {
    let wanted = match flag.shape {
        Shape::Switch if FALSE.contains(&value.as_str()) => return Ok("false".to_owned()),
        Shape::Switch if TRUE.contains(&value.as_str()) => return Ok("true".to_owned()),
        Shape::Switch => "true or false",
        Shape::Number if value.parse::<f64>().is_ok_and(f64::is_finite) => return Ok(value),
        Shape::Number => "a number",
        Shape::Span if super::span::parse(&value).is_some() => return Ok(value),
        Shape::Span => "a time; write one such as 10s or 1h30m",
        Shape::Text | Shape::List => return Ok(value),
    };
    Err(FlagError::Value {
        flag: flag.name,
        value,
        wanted: wanted.to_owned(),
    })
}

fn help() -> String {
    let mut text = String::from("capm3 --controllers=ipam,capm3,hosts [FLAGS]\n\n");
    for flag in TABLE.iter().filter(|flag| flag.handling == Handling::Supported) {
        let default = match (flag.default, flag.shape) {
            ("", _) | (_, Shape::Switch) => String::new(),
            (default, _) => format!(" (default {default})"),
        };
        text.push_str(&format!(
            "  --{}\n        {}{default}\n",
            flag.name,
            flag.description.replace('`', "")
        ));
    }
    text.push_str("\ndocs/flags.md lists further flags of the Go managers, which are ignored or rejected.\n");
    text
}

/// A port; `None` for 0.
pub(super) fn port(number: usize) -> Option<u16> {
    u16::try_from(number).ok().filter(|port| *port != 0)
}
