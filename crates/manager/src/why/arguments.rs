//! The arguments of `why`.

use anyhow::{Context as _, Result, bail};
use metal3_explain::{KINDS, ObjectId, WITHOUT_WAITS, kind_named};
use metal3_runtime::client::Chosen;

use crate::output::Output;

/// The question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The object.
    pub object: ObjectId,
    /// Its namespace; without one, that of the kubeconfig.
    pub namespace: Option<String>,
    /// The form of the output.
    pub output: Output,
    /// The file with the history of the host's node in Ironic.
    pub ironic_history: Option<String>,
}

const VALID: &str = "use why KIND/NAME, -n NAMESPACE, -o text|json|yaml, --kubeconfig FILE, --context NAME, \
                     --ironic-history FILE";

/// Parses the arguments after `why`, and returns the kubeconfig and its context too.
///
/// # Errors
/// Names the argument and the valid ones.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<(Why, Chosen)> {
    let (mut words, mut namespace, mut output, mut chosen) = (Vec::new(), None, None, Chosen::default());
    let mut ironic_history = None;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if !argument.starts_with('-') {
            words.push(argument);
            continue;
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, arguments.next()),
        };
        let place = match name.as_str() {
            "-n" | "--namespace" => &mut namespace,
            "-o" | "--output" => &mut output,
            "--kubeconfig" => &mut chosen.kubeconfig,
            "--context" => &mut chosen.context,
            "--ironic-history" => &mut ironic_history,
            _ => bail!("{name:?}: {VALID}"),
        };
        *place = Some(value.with_context(|| format!("{name} has no value; {VALID}"))?);
    }
    let output = match output {
        None => Output::Text,
        Some(name) => Output::named(&name).with_context(|| format!("-o {name:?}: {VALID}"))?,
    };
    let object = object(&words)?;
    Ok((
        Why {
            object,
            namespace,
            output,
            ironic_history,
        },
        chosen,
    ))
}

/// The object that `KIND/NAME` or `KIND NAME` names.
fn object(words: &[String]) -> Result<ObjectId> {
    let (kind, name) = match words {
        [one] => one
            .split_once('/')
            .with_context(|| format!("{one:?} is not KIND/NAME; {VALID}"))?,
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => bail!("name one object; {VALID}"),
    };
    let known = kind_named(kind).with_context(|| {
        let kinds: Vec<&str> = KINDS.iter().map(|known| known.kind).collect();
        format!("{kind:?} is not a kind that is explained: {}", kinds.join(", "))
    })?;
    if WITHOUT_WAITS.contains(known) {
        bail!(
            "a {} waits for nothing: it has neither conditions nor finalizers; ask about the object that uses it",
            known.kind
        );
    }
    if name.is_empty() {
        bail!("{kind:?} without a name; {VALID}");
    }
    Ok(ObjectId::foreign(known.group, known.kind, name))
}
