//! The words of `kubectl metal3` and their flags: for the parser, the help and the completion.

use metal3_domain::objectives::{NEW, OTHER, Subject};

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// `--flag` or `--flag=VALUE`.
    Optional,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: &'static str,
    pub(super) takes: Takes,
    pub(super) help: &'static str,
}

const fn flag(name: &'static str, short: &'static str, takes: Takes, help: &'static str) -> Flag {
    Flag {
        name,
        short,
        takes,
        help,
    }
}

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) name: &'static str,
    /// The arguments, for the help.
    pub(super) arguments: &'static str,
    pub(super) flags: &'static [Flag],
    pub(super) help: &'static str,
}

const NAMESPACE: Flag = flag(
    "--namespace",
    "-n",
    Takes::Value,
    "the namespace; default: that of the kubeconfig",
);
const KUBECONFIG: Flag = flag(
    "--kubeconfig",
    "",
    Takes::Value,
    "the kubeconfig; default: that of kubectl",
);
const CONTEXT: Flag = flag(
    "--context",
    "",
    Takes::Value,
    "the context of the kubeconfig; default: the current one",
);
const OUTPUT: Flag = flag("--output", "-o", Takes::Value, "text, json or yaml");
const ALL: Flag = flag("--all-namespaces", "-A", Takes::Nothing, "all namespaces");
const HISTORY: Flag = flag(
    "--ironic-history",
    "",
    Takes::Value,
    "a file with the history of the node in Ironic, as JSON",
);
const OF_ONE: &[Flag] = &[NAMESPACE, OUTPUT, KUBECONFIG, CONTEXT];
const OF_HOST: &[Flag] = &[NAMESPACE, OUTPUT, KUBECONFIG, CONTEXT, HISTORY];
const OF_MANY: &[Flag] = &[NAMESPACE, ALL, OUTPUT, KUBECONFIG, CONTEXT];

/// All words that this module performs.
pub(super) const WORDS: &[Word] = &[
    Word {
        name: "tree",
        arguments: "CLUSTER",
        flags: OF_ONE,
        help: "a Cluster down to hosts, BMCs and disks, with what each object waits for",
    },
    Word {
        name: "hosts",
        arguments: "",
        flags: &[
            NAMESPACE,
            ALL,
            OUTPUT,
            KUBECONFIG,
            CONTEXT,
            flag("--selector", "-l", Takes::Value, "only hosts with these labels"),
            flag("--state", "", Takes::Value, "only hosts in this provisioning state"),
            flag(
                "--error",
                "",
                Takes::Optional,
                "only hosts with an error, or with an error that contains the value",
            ),
            flag(
                "--bmc",
                "",
                Takes::Value,
                "only hosts whose BMC address contains the value",
            ),
            flag(
                "--image",
                "",
                Takes::Value,
                "only hosts whose image URL contains the value",
            ),
            flag("--cluster", "", Takes::Value, "only hosts of this Cluster"),
            flag("--watch", "-w", Takes::Nothing, "then print each host that changes"),
        ],
        help: "the hosts, with state, power, consumer, image, BMC and error",
    },
    Word {
        name: "pools",
        arguments: "[NAME]",
        flags: OF_MANY,
        help: "pools of addresses: total, used and free, and who holds which",
    },
    Word {
        name: "consumers",
        arguments: "",
        flags: OF_MANY,
        help: "who uses which host, and machines without one",
    },
    Word {
        name: "claims",
        arguments: "",
        flags: OF_MANY,
        help: "HostClaims with their hosts, power, image, and what they wait for",
    },
    Word {
        name: "timeline",
        arguments: "HOST",
        flags: OF_HOST,
        help: "what happened to a host, with durations and causes",
    },
    Word {
        name: "top",
        arguments: "",
        flags: OF_MANY,
        help: "the slowest steps, the hosts with errors, the oldest waits",
    },
    Word {
        name: "support-bundle",
        arguments: "",
        flags: &[
            NAMESPACE,
            ALL,
            KUBECONFIG,
            CONTEXT,
            flag(
                "--file",
                "-f",
                Takes::Value,
                "the archive to create; default: metal3-support.tar",
            ),
        ],
        help: "an archive of objects, Events and explanations, without secrets",
    },
    Word {
        name: "completion",
        arguments: "bash|zsh|fish|kubectl",
        flags: &[],
        help: "the script that completes words and flags in a shell",
    },
];

/// Words of the plugin that other modules perform.
const OTHERS: [(&str, &str); 4] = [
    ("console", "the fleet in a browser: docs/console.md"),
    ("why KIND/NAME", "why an object waits, down to the last cause"),
    ("select --machine=NAME", "which host a machine would choose"),
    (
        "preflight [--back]",
        "what a switch from the Go managers, or back, would meet",
    ),
];

/// The word of this name.
pub(super) fn find(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

/// The flags of a word, for its error messages.
pub(super) fn usage(word: &Word) -> String {
    let flags = word.flags.iter().map(|flag| {
        let short = if flag.short.is_empty() {
            String::new()
        } else {
            format!("{}|", flag.short)
        };
        match flag.takes {
            Takes::Nothing => format!("[{short}{}]", flag.name),
            Takes::Value => format!("[{short}{} VALUE]", flag.name),
            Takes::Optional => format!("[{short}{}[=VALUE]]", flag.name),
        }
    });
    let parts = [word.name, word.arguments]
        .map(ToOwned::to_owned)
        .into_iter()
        .chain(flags);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    format!("use {}", parts.join(" "))
}

/// The help of one command, if there is such a one.
#[must_use]
pub fn help_of(name: &str) -> Option<String> {
    if let Some(word) = find(name) {
        let flag = |flag: &Flag| {
            let names = [flag.short, flag.name].into_iter().filter(|name| !name.is_empty());
            format!("  {:34}{}\n", names.collect::<Vec<_>>().join(", "), flag.help)
        };
        let flags: String = word.flags.iter().map(flag).collect();
        return Some(format!("{}: {}\n\n{flags}", usage(word), word.help));
    }
    let is_named = |(usage, _): &&(&str, &str)| usage.split(' ').next() == Some(name);
    let (usage, help) = OTHERS.iter().find(is_named)?;
    Some(format!(
        "use {usage}: {help}\n\nIts flags are in docs/kubectl-metal3.md.\n"
    ))
}

/// The help of the plugin.
#[must_use]
pub fn help() -> String {
    let own = WORDS
        .iter()
        .map(|word| (format!("{} {}", word.name, word.arguments), word.help));
    let others = OTHERS.iter().map(|(usage, help)| ((*usage).to_owned(), *help));
    let lines = others
        .filter(|(usage, _)| cfg!(feature = "console") || usage != "console")
        .chain(own)
        .map(|(usage, help)| format!("  {:34}{help}\n", usage.trim_end()));
    format!("kubectl metal3:\n{}", lines.collect::<String>())
}

/// What can follow these words of a command line, the last of which is being typed.
#[must_use]
pub fn candidates(typed: &[String]) -> Vec<String> {
    let (last, before) = typed
        .split_last()
        .map_or(("", [].as_slice()), |(last, before)| (last.as_str(), before));
    let Some(first) = before.first() else {
        let words = ["why", "console", "select", "preflight"]
            .into_iter()
            .filter(|word| cfg!(feature = "console") || *word != "console")
            .chain(WORDS.iter().map(|word| word.name));
        return started(words, last);
    };
    let previous = before.last().map(String::as_str).unwrap_or_default();
    if ["-o", "--output"].contains(&previous) {
        return started(["text", "json", "yaml"], last);
    }
    if (first.as_str(), previous) == ("hosts", "--state") {
        // A state of two words has to be quoted, which bash does not do.
        let states = Subject::Host.states().iter().map(|(state, _)| *state);
        return started(
            states.filter(|state| !state.contains(' ') && ![NEW, OTHER].contains(state)),
            last,
        );
    }
    let has_value = |flag: &Flag| flag.takes == Takes::Value && [flag.name, flag.short].contains(&previous);
    let flags = find(first).map_or(OF_HOST, |word| word.flags);
    if !previous.is_empty() && flags.iter().any(has_value) {
        return Vec::new();
    }
    match (first.as_str(), find(first)) {
        ("why", _) if before.len() == 1 && !last.starts_with('-') => {
            let kinds = metal3_explain::KINDS
                .iter()
                .map(|known| format!("{}/", known.kind.to_ascii_lowercase()));
            kinds.filter(|kind| kind.starts_with(last)).collect()
        }
        ("console", _) => {
            let flags = [
                "--address",
                "--read-only",
                NAMESPACE.name,
                KUBECONFIG.name,
                CONTEXT.name,
            ];
            started(flags, last)
        }
        ("why", _) => started(OF_HOST.iter().map(|flag| flag.name), last),
        ("completion", _) => started(["bash", "zsh", "fish", "kubectl"], last),
        (_, Some(word)) => started(word.flags.iter().map(|flag| flag.name), last),
        (_, None) => Vec::new(),
    }
}

fn started<'a>(all: impl IntoIterator<Item = &'a str>, start: &str) -> Vec<String> {
    all.into_iter()
        .filter(|one| one.starts_with(start))
        .map(ToOwned::to_owned)
        .collect()
}

/// The script for a shell, or for `kubectl` itself, which runs `kubectl_complete-metal3` of `$PATH`.
#[must_use]
pub fn completion(shell: &str) -> Option<&'static str> {
    match shell {
        "bash" => Some(include_str!("completion.bash")),
        "zsh" => Some(include_str!("completion.zsh")),
        "fish" => Some(include_str!("completion.fish")),
        "kubectl" => Some(include_str!("completion.kubectl")),
        _ => None,
    }
}
