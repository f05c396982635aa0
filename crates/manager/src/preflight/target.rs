//! The settings of a Go manager, as those of this program in its place.

use metal3_flags::{Mapped, Options, Owner, mapped};
use metal3_preflight::{Given, Manager, NotRead, Variable, WATCH_NAMESPACE, expanded, unknown_reference};

/// The variables that say where Ironic is, and how to log in. They are those of the command: the network of the manager, its mounted
/// files and its login are not those of the person who runs it, and a ConfigMap must not choose where a login of that person goes.
pub(super) const OF_IRONIC: [&str; 10] = [
    "IRONIC_ENDPOINT",
    "IRONIC_ENDPOINTS",
    "IRONIC_NAME",
    "IRONIC_NAMESPACE",
    "IRONIC_CACERT_FILE",
    "IRONIC_CLIENT_CERT_FILE",
    "IRONIC_CLIENT_PRIVATE_KEY_FILE",
    "IRONIC_INSECURE",
    "IRONIC_SKIP_CLIENT_SAN_VERIFY",
    "METAL3_AUTH_ROOT_DIR",
];

/// A Go manager whose place the controllers take.
pub(super) struct Target<'a> {
    pub(super) manager: &'a Manager,
    variables: Vec<&'a Variable>,
}

/// The running Go managers with their variables.
pub(super) fn targets<'a>(managers: &'a [Manager], given: &'a [Given]) -> Vec<Target<'a>> {
    let theirs = managers.iter().filter(|manager| !manager.is_this_program);
    let target = |manager: &'a Manager| {
        let environment = given.iter().filter(|one| one.deployment == manager.deployment);
        Target {
            manager,
            variables: environment.flat_map(|one| &one.variables).collect(),
        }
    };
    theirs.map(target).collect()
}

impl Target<'_> {
    pub(super) fn owners(&self) -> Vec<Owner> {
        let is_here = |owner: &Owner| self.manager.controllers.contains(&owner.name());
        Owner::ALL.into_iter().filter(is_here).collect()
    }

    fn find(&self, name: &str) -> Option<&Variable> {
        Variable::find(self.variables.iter().copied(), name)
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.find(name)?.value.clone()
    }

    /// That the value of a variable is not known.
    fn not_read(&self, variable: &Variable) -> String {
        format!("Deployment {}: {}", self.manager.deployment, variable.not_read())
    }

    /// The options of this program in its place, in a dry run.
    pub(super) fn options(&self, namespace: Option<&str>) -> Result<Options, String> {
        // A guess would read what is of others, or nothing.
        if let Some(unknown) = self.find(WATCH_NAMESPACE).filter(|one| one.value.is_none()) {
            return Err(format!("{WATCH_NAMESPACE} is not known: {}", self.not_read(unknown)));
        }
        let arguments = self.manager.arguments.iter();
        if let Some(unknown) = arguments
            .clone()
            .find_map(|one| unknown_reference(one, |name| self.find(name)))
        {
            return Err(format!("its arguments are not known: {}", self.not_read(unknown)));
        }
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
        let is_unknown = |one: &&&Variable| {
            let is_named = OF_IRONIC.contains(&one.name.as_str());
            one.value.is_none() && !is_named && !one.source.differs_between_pods()
        };
        self.variables.iter().filter(is_unknown).map(|one| {
            let name = if one.name == "*" { "any variable" } else { &one.name };
            NotRead {
                what: format!("what {name} changes"),
                why: self.not_read(one),
            }
        })
    }
}
