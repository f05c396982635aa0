//! The arguments of a Go manager, as this program takes them.

use super::flag::{Owner, Shape};
use super::parse::{FlagError, Given, Request, parse, read};
use super::table::find;

/// Arguments that lead to the same behaviour, and those that do not exist here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// The arguments of this program, `--controllers` first.
    pub arguments: Vec<String>,
    /// The arguments that are left out, each with the reason.
    pub dropped: Vec<(String, String)>,
}

/// Maps the arguments of the Go manager of these controllers.
#[must_use]
pub fn mapped(controllers: &[Owner], arguments: impl IntoIterator<Item = String>) -> Mapped {
    let names: Vec<&str> = controllers.iter().copied().map(Owner::name).collect();
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut given = Given::default();
        match read(&argument, &mut arguments, &mut given) {
            Ok(()) => {
                kept.extend(given.single().map(|(flag, value)| (flag, spelled(flag, &value))));
                dropped.extend(given.warnings().iter().map(|why| (argument.clone(), why.clone())));
            }
            Err(error) => dropped.push((argument, error.to_string())),
        }
    }
    let all = |kept: &[(&'static str, String)]| {
        let controllers = format!("--controllers={}", names.join(","));
        let own = kept.iter().filter(|(flag, _)| *flag != "controllers");
        let mut all = vec![controllers];
        for (_, argument) in own {
            // Of several values the last one counts.
            all.retain(|one| one != argument);
            all.push(argument.clone());
        }
        all
    };
    // Values that contradict each other, or that no type has, are found only together.
    while let Err(errors) = parse(all(&kept)) {
        let before = kept.len();
        for error in errors {
            let wrong = |flag: &str| error.flag() == Some(flag);
            let taken = kept.extract_if(.., |(flag, _)| wrong(flag));
            dropped.extend(taken.map(|(_, argument)| (argument, error.to_string())));
        }
        if kept.len() == before {
            break;
        }
    }
    Mapped {
        arguments: all(&kept),
        dropped,
    }
}

fn spelled(flag: &'static str, value: &str) -> String {
    let is_switch = find(flag).is_some_and(|flag| flag.shape == Shape::Switch);
    match is_switch && value == "true" {
        true => format!("--{flag}"),
        false => format!("--{flag}={value}"),
    }
}

impl FlagError {
    /// The flag that it is about, if there is such a flag.
    #[must_use]
    pub const fn flag(&self) -> Option<&'static str> {
        match self {
            Self::MissingValue(flag) | Self::Value { flag, .. } | Self::Refused { flag, .. } => Some(flag),
            Self::Unknown(_) | Self::NotAFlag(_) | Self::Variable { .. } => None,
        }
    }
}

impl Request {
    /// The options of a run.
    #[must_use]
    pub fn options(self) -> Option<crate::Options> {
        match self {
            Self::Run(options) => Some(*options),
            Self::Help(_) | Self::Version(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_argument_of_a_go_manager_is_kept_renamed_or_dropped_with_a_reason() {
        let rows: &[(&[Owner], &str, &str, &[&str])] = &[
            (&[Owner::Hosts], "", "", &[]),
            (
                &[Owner::Hosts],
                "--enable-leader-election -webhook-port 9443",
                "--leader-elect --webhook-port=9443",
                &[],
            ),
            (&[Owner::Hosts], "--hostclaims", "--hostclaims", &[]),
            (&[Owner::Hosts], "--hostclaims=false", "--hostclaims=false", &[]),
            (
                &[Owner::Hosts],
                "--dev --demo-mode",
                "",
                &["--dev does nothing", "there are no plugins"],
            ),
            (
                &[Owner::Capm3],
                "--enableBMHNameBasedPreallocation=true",
                "--enable-bmh-name-based-preallocation",
                &[],
            ),
            (
                &[Owner::Capm3],
                "--new-flag=1 word",
                "",
                &["there is no such flag", "is no flag"],
            ),
            (
                &[Owner::Capm3],
                "--leader-elect=false --watch-filter=blue --leader-elect=true --leader-elect=false",
                "--watch-filter=blue --leader-elect --leader-elect=false",
                &[],
            ),
            (
                &[Owner::Capm3],
                "--metal3machine-concurrency=-1",
                "",
                &["metal3machine-concurrency"],
            ),
            (&[Owner::Hosts], "--watch-filter=blue", "", &["watch every host"]),
            (&[Owner::Capm3], "--namespace", "", &["needs a value"]),
        ];
        for (owners, given, kept, reasons) in rows {
            let mapped = mapped(owners, given.split_whitespace().map(str::to_owned));
            let expected = format!("--controllers={} {kept}", owners[0].name());
            assert_eq!(mapped.arguments.join(" "), expected.trim(), "{given}");
            let dropped: Vec<&str> = mapped.dropped.iter().map(|(_, why)| why.as_str()).collect();
            assert_eq!(dropped.len(), reasons.len(), "{given}: {dropped:?}");
            let named = dropped.iter().zip(*reasons);
            assert!(
                named.clone().all(|(why, part)| why.contains(part)),
                "{given}: {dropped:?}"
            );
            assert!(parse(mapped.arguments).is_ok(), "{given}");
        }
    }
}
