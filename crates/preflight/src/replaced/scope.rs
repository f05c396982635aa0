//! The objects that a Go manager serves: all of them, or those of a namespace or with a label.

use metal3_domain::uri::without_logins;
use metal3_flags::{FlagError, Mapped, Options, Owner, Request, mapped};

use crate::facts::Facts;
use crate::finding::{Decision, Finding, NotRead};
use crate::managers::Manager;
use crate::settings::{Variable, expanded, unknown_reference};

/// The variable with the namespace of a manager of hosts without `--namespace`. The others do not read it.
pub const WATCH_NAMESPACE: &str = "WATCH_NAMESPACE";

/// The flag that decides about the namespace, so that the variable does not.
const NAMESPACE: &str = "namespace";

fn variables<'a>(facts: &'a Facts, manager: &Manager) -> &'a [Variable] {
    let given = facts.given.iter().find(|one| one.deployment == manager.deployment);
    given.map_or(&[], |one| &one.variables)
}

/// The first variable in an argument whose value is not known. One that differs between Pods is no setting.
fn unknown<'a>(facts: &'a Facts, manager: &Manager, argument: &str) -> Option<&'a Variable> {
    let found = unknown_reference(argument, |name| Variable::find(variables(facts, manager), name))?;
    (!found.source.differs_between_pods()).then_some(found)
}

/// The arguments with their variables, but for those whose value is not known.
pub(super) fn known_arguments(facts: &Facts, manager: &Manager) -> Vec<String> {
    let value = |name: &str| Variable::find(variables(facts, manager), name)?.value.clone();
    let mut known: Vec<String> = Vec::new();
    for argument in &manager.arguments {
        if unknown(facts, manager, argument).is_none() {
            known.push(expanded(argument, value));
        } else if !argument.starts_with('-') {
            // It is the value of the flag before it.
            known.pop_if(|flag| flag.starts_with('-') && !flag.contains('='));
        }
    }
    known
}

/// Nothing in the cluster shows whether the files that will be applied have the scope.
pub(super) fn kept(facts: &Facts, manager: &Manager, object: &str) -> Option<Finding> {
    let named = named(facts, manager)?;
    let what = format!(
        "serves only the objects of {named}, and the files of the release name no scope: applied as they are, they serve the objects of \
         others at once"
    );
    let cure = "write its settings, below, into the file before it is applied";
    Some(Finding::new(Decision::Go, object, without_logins(&what), cure))
}

/// Each setting that narrows the scope, as it is written.
fn named(facts: &Facts, manager: &Manager) -> Option<String> {
    let options = options(facts, manager)?;
    let flag = |name: &str, value: Option<&String>| value.map(|value| format!("--{name}={value}"));
    let mut named: Vec<String> = [
        flag("namespace", options.namespace.as_ref()),
        flag("watch-filter", options.watch_filter.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if options.namespace.is_none() && !manager.has_flag(NAMESPACE) {
        let watched = of_environment(facts, manager);
        let watched = watched.and_then(|variable| Some((variable.value.as_deref()?, variable.source.text())));
        let watched = watched.filter(|(value, _)| !value.is_empty());
        named.extend(watched.map(|(value, from)| format!("{WATCH_NAMESPACE}={value} (from {from})")));
    }
    (!named.is_empty()).then(|| named.join(" and "))
}

/// The options that this program takes over; what it refuses has findings of its own.
fn options(facts: &Facts, manager: &Manager) -> Option<Options> {
    let owners = Owner::ALL.into_iter();
    let owners: Vec<Owner> = owners
        .filter(|owner| manager.controllers.contains(&owner.name()))
        .collect();
    let Mapped { arguments, .. } = mapped(&owners, known_arguments(facts, manager));
    metal3_flags::parse(arguments).ok().and_then(Request::options)
}

fn of_environment<'a>(facts: &'a Facts, manager: &Manager) -> Option<&'a Variable> {
    let is_of_hosts = manager.controllers.contains(&Owner::Hosts.name());
    let variables = variables(facts, manager);
    is_of_hosts
        .then(|| Variable::find(variables, WATCH_NAMESPACE))
        .flatten()
}

/// Settings of the running Go managers that may narrow their scope, and of which the value or the meaning is not known.
pub(crate) fn not_known(facts: &Facts, managers: &[Manager]) -> Vec<NotRead> {
    let theirs = managers.iter().filter(|manager| !manager.is_this_program);
    theirs.flat_map(|manager| of_manager(facts, manager)).collect()
}

fn of_manager(facts: &Facts, manager: &Manager) -> Vec<NotRead> {
    let at = &manager.deployment;
    let mut not_known = Vec::new();
    for argument in &manager.arguments {
        if let Some(variable) = unknown(facts, manager, argument) {
            not_known.push(NotRead {
                what: format!("the argument {} of Deployment {at}", without_logins(argument)),
                why: variable.not_read(),
            });
        }
    }
    not_known.extend(manager.started_by.as_ref().map(|program| NotRead {
        what: format!("the arguments of Deployment {at}"),
        why: format!(
            "its command starts {}, which may give the manager others",
            without_logins(program)
        ),
    }));
    let controllers = format!("--controllers={}", manager.controllers.join(","));
    let arguments = known_arguments(facts, manager);
    let errors = metal3_flags::parse([controllers].into_iter().chain(arguments)).err();
    for error in errors.into_iter().flatten() {
        if let FlagError::Unknown(name) = error {
            let name = without_logins(&name);
            not_known.push(NotRead {
                what: format!("what --{name} of Deployment {at} does"),
                why: "no Go manager has such a flag that this program knows, so it may narrow the objects that are served".to_owned(),
            });
        }
    }
    let unread = of_environment(facts, manager).filter(|one| one.value.is_none() && !manager.has_flag(NAMESPACE));
    not_known.extend(unread.map(|variable| NotRead {
        what: format!("{WATCH_NAMESPACE} of Deployment {at}"),
        why: variable.not_read(),
    }));
    not_known
}
