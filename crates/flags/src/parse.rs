//! Arguments against the table. Every fault is reported, not the first alone: a Deployment is edited once.

use std::collections::BTreeMap;

use super::flag::{Fate, Flag, Owner, Shape};
use super::options::Options;
use super::table::{TABLE, find};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// To run.
    Run(Box<Options>),
    /// To print this and end.
    Print(String),
}

/// An argument that cannot be used. It names the flag and the cure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagFault {
    /// Nobody knows it.
    #[error("--{0}: there is no such flag; --help lists them")]
    Unknown(String),
    /// It is no flag.
    #[error("{0:?}: is no flag; all arguments are flags, such as --controllers=ipam")]
    Stray(String),
    /// It lacks its value.
    #[error("--{0}: needs a value; write --{0}=VALUE")]
    Bare(&'static str),
    /// Its value is none.
    #[error("--{flag}: {value:?} is not {wanted}")]
    Value {
        /// The flag.
        flag: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        wanted: String,
    },
    /// It would change what the program does, and cannot.
    #[error("--{flag}: {why}")]
    Refused {
        /// The flag.
        flag: &'static str,
        /// Why.
        why: String,
    },
}

/// The values given, the last one of each flag, and what is to be said about them.
#[derive(Debug, Default)]
pub(super) struct Given {
    values: BTreeMap<&'static str, Vec<String>>,
    warnings: Vec<String>,
}

impl Given {
    /// The value of a flag: the last one given, or its default.
    pub(super) fn text(&self, name: &'static str) -> String {
        let given = self.values.get(name).and_then(|values| values.last());
        given.map_or_else(|| default(name).to_owned(), Clone::clone)
    }

    pub(super) fn switch(&self, name: &'static str) -> bool {
        self.text(name) == "true"
    }

    /// All values of a list, without blanks around them.
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

    /// What the log has to say.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn default(name: &str) -> &'static str {
    find(name).map_or("", |flag| flag.default)
}

/// Reads the arguments, without the name of the program.
///
/// # Errors
/// Every argument that cannot be used.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Request, Vec<FlagFault>> {
    let (mut given, mut faults) = (Given::default(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if let Err(fault) = read(&argument, &mut arguments, &mut given) {
            faults.push(fault);
        }
    }
    if given.switch("help") {
        return Ok(Request::Print(help()));
    }
    if given.switch("version") {
        return Ok(Request::Print(format!("capm3 {}\n", crate::version::version())));
    }
    match Options::of(&given) {
        Ok(options) if faults.is_empty() => Ok(Request::Run(Box::new(options))),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

/// Reads one flag, and its value if that is the next argument.
fn read(argument: &str, rest: &mut impl Iterator<Item = String>, given: &mut Given) -> Result<(), FlagFault> {
    let stray = || FlagFault::Stray(argument.to_owned());
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
    let flag = find(name).ok_or_else(|| FlagFault::Unknown(name.to_owned()))?;
    let value = match (value, flag.shape) {
        (Some(value), _) => value,
        (None, Shape::Switch) => "true".to_owned(),
        (None, Shape::Text | Shape::List | Shape::Number | Shape::Span) => {
            rest.next().ok_or(FlagFault::Bare(flag.name))?
        }
    };
    accept(flag, value, given)
}

fn accept(flag: &'static Flag, value: String, given: &mut Given) -> Result<(), FlagFault> {
    let value = checked(flag, value)?;
    match flag.fate {
        Fate::Taken => given.values.entry(flag.name).or_default().push(value),
        Fate::Means(other) => given.values.entry(other).or_default().push(value),
        Fate::Ignored(why) => given.warnings.push(format!("--{} does nothing: {why}", flag.name)),
        // What is given as it would be anyway asks for nothing.
        Fate::Refused(_) if value == flag.default => {}
        Fate::Refused(why) => {
            let owners: Vec<&str> = flag.owners.iter().copied().map(Owner::name).collect();
            return Err(FlagFault::Refused {
                flag: flag.name,
                why: format!("is a flag of the controllers {}: {why}", owners.join(", ")),
            });
        }
    }
    Ok(())
}

/// The value in its usual form, if the flag takes it.
fn checked(flag: &'static Flag, value: String) -> Result<String, FlagFault> {
    let wanted = match flag.shape {
        Shape::Switch => match value.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => return Ok("true".to_owned()),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => return Ok("false".to_owned()),
            _ => "true or false",
        },
        Shape::Number if value.parse::<f64>().is_ok_and(f64::is_finite) => return Ok(value),
        Shape::Number => "a number",
        Shape::Span if super::span::parse(&value).is_some() => return Ok(value),
        Shape::Span => "a time; write one such as 10s or 1h30m",
        Shape::Text | Shape::List => return Ok(value),
    };
    Err(FlagFault::Value {
        flag: flag.name,
        value,
        wanted: wanted.to_owned(),
    })
}

fn help() -> String {
    let mut text = String::from("capm3 --controllers=ipam,capm3,hosts [FLAGS]\n\n");
    for flag in TABLE.iter().filter(|flag| flag.fate == Fate::Taken) {
        let default = match (flag.default, flag.shape) {
            ("", _) | (_, Shape::Switch) => String::new(),
            (default, _) => format!(" (default {default})"),
        };
        text.push_str(&format!(
            "  --{}\n        {}{default}\n",
            flag.name,
            flag.says.replace('`', "")
        ));
    }
    text.push_str("\nFlags of the Go managers that are not listed are accepted or refused as docs/flags.md says.\n");
    text
}
