//! The arguments and variables of the Go managers, as this program takes them.

use std::cell::Cell;

use metal3_domain::uri::without_logins;
use metal3_flags::{Mapped, Owner, VARIABLES, mapped};
use serde::Serialize;

use crate::managers::Manager;

/// Variables that this program reads and `docs/flags.md` does not list: their value is that of the Pod, or a product's own.
const OF_THE_POD: [&str; 2] = ["POD_NAME", "POD_NAMESPACE"];
const OF_MACHINES: &str = "CAPM3_FAST_TRACK";

/// Where a variable of a container comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// It is written in the Deployment.
    Deployment,
    /// An entry of this ConfigMap.
    ConfigMap(String),
    /// An entry of this Secret. Its value is not read.
    Secret(String),
    /// A field of the Pod, by its path.
    Pod(String),
}

impl Source {
    /// Whether each Pod has another value, such as its name, so that no decision can depend on it.
    #[must_use]
    pub fn differs_between_pods(&self) -> bool {
        let of_a_pod = ["metadata.name", "metadata.uid", "spec.nodeName"];
        matches!(self, Self::Pod(path) if of_a_pod.contains(&path.as_str()) || path.starts_with("status."))
    }

    /// Where a value is, in words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Deployment => "the Deployment".to_owned(),
            Self::ConfigMap(name) => format!("ConfigMap {name}"),
            Self::Secret(name) => format!("Secret {name}"),
            Self::Pod(path) => format!("the field {path} of the Pod"),
        }
    }
}

/// A variable of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    /// Its name; that of all entries of a Secret that was not read is `*`.
    pub name: String,
    /// Its value, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where it comes from.
    pub source: Source,
}

impl Variable {
    /// Whether it is the variable of this name, or stands for all entries of a Secret, of which one may have it.
    #[must_use]
    pub fn may_be(&self, name: &str) -> bool {
        self.name == name
            || self
                .name
                .strip_suffix('*')
                .is_some_and(|prefix| name.starts_with(prefix))
    }

    /// That its value is not read.
    #[must_use]
    pub fn not_read(&self) -> String {
        let from = self.source.text();
        match self.name.ends_with('*') {
            true => format!("it may come from {from}, which is not read"),
            false => format!("variable {} comes from {from}, which is not read", self.name),
        }
    }

    /// The variable of this name among others, in the order of their container: the last one counts.
    pub fn find<'a>(variables: impl IntoIterator<Item = &'a Self>, name: &str) -> Option<&'a Self> {
        variables.into_iter().filter(|one| one.may_be(name)).last()
    }
}

/// The environment of a manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// `NAMESPACE/NAME` of its Deployment.
    pub deployment: String,
    /// Its variables, in the order of its container.
    pub variables: Vec<Variable>,
    /// Variables that this program rejects or that have no effect, each with the reason.
    pub without_effect: Vec<(String, String)>,
}

/// What is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// The argument, or the name of the variable.
    pub setting: String,
    /// Why.
    pub why: String,
}

/// The settings of one Go manager, for this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// `NAMESPACE/NAME` of its Deployment.
    pub deployment: String,
    /// The arguments of this program.
    pub arguments: Vec<String>,
    /// The variables that this program reads.
    pub variables: Vec<Variable>,
    /// What is left out.
    pub dropped: Vec<Dropped>,
}

/// The settings of each Go manager.
pub(crate) fn settings(managers: &[Manager], given: &[Given]) -> Vec<Settings> {
    let theirs = managers.iter().filter(|manager| !manager.is_this_program);
    theirs.map(|manager| of_manager(manager, given)).collect()
}

fn of_manager(manager: &Manager, given: &[Given]) -> Settings {
    let owners = Owner::ALL
        .into_iter()
        .filter(|owner| manager.controllers.contains(&owner.name()));
    let owners: Vec<Owner> = owners.collect();
    let environment = given.iter().find(|one| one.deployment == manager.deployment);
    let variables = environment.map_or(&[][..], |one| &one.variables);
    let values = |name: &str| Variable::find(variables, name)?.value.clone();
    let arguments = manager.arguments.iter();
    let arguments = arguments.map(|argument| without_logins(&expanded(argument, values)));
    let Mapped { arguments, dropped } = mapped(&owners, arguments);
    let mut dropped: Vec<Dropped> = dropped
        .into_iter()
        .map(|(setting, why)| Dropped { setting, why })
        .collect();
    let mut kept = Vec::new();
    for variable in variables {
        let refused = environment.into_iter().flat_map(|one| &one.without_effect);
        let refused = refused
            .filter(|(name, _)| *name == variable.name)
            .map(|(_, why)| why.clone())
            .next();
        match refused.or_else(|| not_read(&owners, &variable.name)) {
            Some(why) => dropped.push(Dropped {
                setting: variable.name.clone(),
                why,
            }),
            None => kept.push(Variable {
                value: variable.value.as_deref().map(without_logins),
                ..variable.clone()
            }),
        }
    }
    kept.sort_by_key(|one| (one.name.clone(), one.source.text()));
    Settings {
        deployment: manager.deployment.clone(),
        arguments,
        variables: kept,
        dropped,
    }
}

/// Why this program does not read a variable. The host controllers read all that `docs/flags.md` lists.
fn not_read(owners: &[Owner], name: &str) -> Option<String> {
    let is_listed = || VARIABLES.iter().any(|variable| variable.name == name);
    let is_of_leases = || is_listed() && name.ends_with("_SECONDS");
    let is_read = name.ends_with('*')
        || OF_THE_POD.contains(&name)
        || (owners.contains(&Owner::Hosts) && is_listed())
        || (owners.contains(&Owner::Capm3) && name == OF_MACHINES)
        || is_of_leases();
    (!is_read).then(|| "no controller of this program reads it".to_owned())
}

/// The argument with the variables that Kubernetes replaces in it: `$(NAME)`. `$$` stands for a dollar.
#[must_use]
pub fn expanded(argument: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let (mut text, mut rest) = (String::new(), argument);
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        rest = if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            after
        } else if let Some((value, after)) = reference.and_then(|(name, after)| Some((value(name)?, after))) {
            text.push_str(&value);
            after
        } else {
            text.push('$');
            after
        };
    }
    text + rest
}

/// The first variable that a text refers to and whose value is not known.
pub fn unknown_reference<'a>(text: &str, variables: impl Fn(&str) -> Option<&'a Variable>) -> Option<&'a Variable> {
    let first = Cell::new(None);
    drop(expanded(text, |name| {
        let found = variables(name)?;
        if found.value.is_none() && first.get().is_none() {
            first.set(Some(found));
        }
        found.value.clone()
    }));
    first.get()
}

/// The lines for a person, ready to be copied.
pub(crate) fn text(settings: &[Settings]) -> String {
    let mut text = String::new();
    for one in settings {
        let arguments: Vec<String> = one.arguments.iter().map(|one| format!("{one:?}")).collect();
        text.push_str(&format!("\nSettings of {} for this program:\n", one.deployment));
        text.push_str(&format!("    args: [{}]\n", arguments.join(", ")));
        for variable in &one.variables {
            text.push_str(&match &variable.value {
                Some(value) if !matches!(variable.source, Source::Pod(_)) => format!(
                    "    {}: {value:?}    # from {}\n",
                    variable.name,
                    variable.source.text()
                ),
                _ => format!(
                    "    # {}: keep the reference to {}\n",
                    variable.name,
                    variable.source.text()
                ),
            });
        }
        for dropped in &one.dropped {
            text.push_str(&format!("    # without {}: {}\n", dropped.setting, dropped.why));
        }
    }
    text
}
