//! The settings of a Go manager, as those of this program in its place.

use std::collections::BTreeMap;

use metal3_flags::{Mapped, Options, Owner, mapped};
use metal3_preflight::{Given, Manager, NotRead, Variable, expanded};

/// The variables that say where Ironic is, and how to log in. They are those of the command: the network of the manager, its mounted
/// files and its login are not those of the person who runs it, and a ConfigMap must not choose where a login of that person goes.
pub(super) const OF_IRONIC: [&str; 9] = [
    "IRONIC_ENDPOINT",
    "IRONIC_NAME",
    "IRONIC_NAMESPACE",
    "IRONIC_CACERT_FILE",
    "IRONIC_CLIENT_CERT_FILE",
    "IRONIC_CLIENT_PRIVATE_KEY_FILE",
    "IRONIC_INSECURE",
    "IRONIC_SKIP_CLIENT_SAN_VERIFY",
    "METAL3_AUTH_ROOT_DIR",
];

/// The variable with the namespaces of a manager.
const NAMESPACES: &str = "WATCH_NAMESPACE";

/// A Go manager whose place the controllers take.
pub(super) struct Target<'a> {
    pub(super) manager: &'a Manager,
    variables: BTreeMap<&'a str, &'a str>,
    /// Those without a known value, and where they come from.
    unknown: Vec<(&'a str, String)>,
}

/// The running Go managers with their variables.
pub(super) fn targets<'a>(managers: &'a [Manager], given: &'a [Given]) -> Vec<Target<'a>> {
    let theirs = managers.iter().filter(|manager| !manager.is_this_program);
    let target = |manager: &'a Manager| {
        let environment = given.iter().filter(|one| one.deployment == manager.deployment);
        let all = || environment.clone().flat_map(|one| &one.variables);
        let known = all().filter_map(|one| Some((one.name.as_str(), one.value.as_deref()?)));
        let is_unknown = |one: &&Variable| {
            let is_named = OF_IRONIC.contains(&one.name.as_str());
            one.value.is_none() && !is_named && !one.source.differs_between_pods()
        };
        let unknown = all().filter(is_unknown);
        Target {
            manager,
            variables: known.collect(),
            unknown: unknown.map(|one| (one.name.as_str(), one.source.text())).collect(),
        }
    };
    theirs.map(target).collect()
}

impl Target<'_> {
    pub(super) fn owners(&self) -> Vec<Owner> {
        let is_here = |owner: &Owner| self.manager.controllers.contains(&owner.name());
        Owner::ALL.into_iter().filter(is_here).collect()
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    /// The options of this program in its place, in a dry run.
    pub(super) fn options(&self, namespace: Option<&str>) -> Result<Options, String> {
        if let Some((name, from)) = self.unknown.iter().find(|(name, _)| *name == NAMESPACES) {
            return Err(format!(
                "{name}, the namespaces of {}, comes from {from}, which is not read",
                self.manager.deployment
            ));
        }
        let arguments = self.manager.arguments.iter();
        let arguments = arguments.map(|argument| expanded(argument, |name| self.variable(name)));
        let Mapped { mut arguments, dropped } = mapped(&self.owners(), arguments);
        // Without it the whole cluster would be read, and what is of others reported.
        let is_scope = |argument: &str| argument.trim_start_matches('-').starts_with("namespace");
        if let Some((argument, why)) = dropped.iter().find(|(argument, _)| is_scope(argument)) {
            return Err(format!("{argument} of {}: {why}", self.manager.deployment));
        }
        arguments.push("--observe-only".to_owned());
        let own = self.parsed(&arguments)?;
        let Some(namespace) = namespace else {
            return Ok(own);
        };
        match own.namespace.as_deref() {
            Some(served) if served != namespace => {
                Err(format!("{} serves namespace {served} alone", self.manager.deployment))
            }
            _ => {
                arguments.push(format!("--namespace={namespace}"));
                self.parsed(&arguments)
            }
        }
    }

    fn parsed(&self, arguments: &[String]) -> Result<Options, String> {
        let parsed = metal3_flags::parse_with(arguments.iter().cloned(), |name| self.variable(name));
        let options = parsed.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        options
            .options()
            .ok_or_else(|| "its arguments only print a text".to_owned())
    }

    /// What of its settings the dry run does not have.
    pub(super) fn not_known(&self) -> impl Iterator<Item = NotRead> {
        self.unknown.iter().map(|(name, from)| NotRead {
            what: format!("what {} changes", if *name == "*" { "any variable" } else { name }),
            why: format!(
                "variable {name} of {} comes from {from}, which is not read",
                self.manager.deployment
            ),
        })
    }
}
