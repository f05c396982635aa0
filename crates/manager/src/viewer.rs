//! The words of `kubectl metal3`, for a person at a terminal.

use std::path::Path;
use std::process::ExitCode;

use metal3_domain::clock::{Clock as _, SystemClock};
use metal3_manager::{plugin, why};
use metal3_runtime::client::load_viewer_config;

use super::{block_on, print_all};

/// The commands of the program, for its help.
pub(super) fn commands() -> String {
    plugin::help()
}

/// Prints the help of the command that is asked for it. The sandbox has its own.
pub(super) fn help() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let text = plugin::help_of(&arguments.next()?)?;
    arguments.any(|one| one == "--help" || one == "-h").then(|| {
        print_all(&text);
        ExitCode::SUCCESS
    })
}

/// One line instead of one for each read, when no API server answers.
async fn reach(client: kube::Client, url: &str) -> anyhow::Result<kube::Client> {
    match client.apiserver_version().await {
        Err(error @ kube::Error::Service(_)) => Err(anyhow::Error::new(error).context(format!(
            "the API server {url} of the kubeconfig does not answer; if it was a sandbox, it has ended"
        ))),
        Ok(_) | Err(_) => Ok(client),
    }
}

/// Runs the word of the command line, if it is one of the plugin.
pub(super) fn run() -> Option<ExitCode> {
    let word = std::env::args().nth(1);
    if word.as_deref() == Some("why") {
        return Some(why(std::env::args().skip(2)));
    }
    #[cfg(feature = "console")]
    if word.as_deref() == Some("console") {
        return Some(console(std::env::args().skip(2)));
    }
    if let Some(code) = word.and_then(|word| plugin(&word)) {
        return Some(code);
    }
    is_plugin(std::env::args().next().as_deref()).then(|| {
        eprint!("{}", plugin::help());
        ExitCode::from(2)
    })
}

/// Whether `kubectl` runs the binary as its plugin `metal3`. A plugin never starts a manager.
fn is_plugin(program: Option<&str>) -> bool {
    let name = program.and_then(|program| Path::new(program).file_name());
    name.is_some_and(|name| name == "kubectl-metal3")
}

/// Runs a word of the plugin, if it is one.
fn plugin(word: &str) -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    if word == "__complete" {
        let lines = plugin::candidates(&arguments).into_iter().map(|one| one + "\n");
        print_all(&lines.collect::<String>());
        return Some(ExitCode::SUCCESS);
    }
    if !plugin::is_word(word) {
        return None;
    }
    if word == "completion" {
        let Some(script) = arguments.first().and_then(|shell| plugin::completion(shell)) else {
            eprintln!("capm3 completion: name one of bash, zsh, fish, kubectl");
            return Some(ExitCode::from(2));
        };
        print_all(script);
        return Some(ExitCode::SUCCESS);
    }
    let (wanted, chosen) = match plugin::parse(word, arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("capm3 {error:#}");
            return Some(ExitCode::from(2));
        }
    };
    let state = block_on(async |requests| {
        let config = load_viewer_config(&chosen).await?;
        let (namespace, clock) = (config.default_namespace.clone(), SystemClock::start());
        let url = config.cluster_url.to_string();
        let now = || clock.now().into();
        let client = reach(requests.connect(config)?, &url).await?;
        wanted
            .run(&client, &namespace, now, &mut |text: &str| print_all(text))
            .await
    });
    Some(match state {
        Ok(state) => ExitCode::from(state.exit_code()),
        Err(error) => {
            eprintln!("capm3 {word}: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Runs `capm3 console` until it is stopped.
#[cfg(feature = "console")]
fn console(arguments: impl Iterator<Item = String>) -> ExitCode {
    use std::sync::Arc;

    use anyhow::Context as _;
    use metal3_console::login::{Kubeconfig, Source as _};
    use metal3_console::{Console, Notice, Options};

    let wanted = match metal3_console::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("capm3 console: {error:#}");
            return ExitCode::from(2);
        }
    };
    let ended = block_on(async |requests| {
        let logins = Arc::new(Kubeconfig::new(&wanted.chosen, requests));
        let config = logins.config().await?;
        let options = Options {
            address: wanted.address,
            namespace: wanted.namespace,
            default_namespace: config.default_namespace,
            is_read_only: wanted.is_read_only,
            lab: None,
        };
        let clock = Arc::new(SystemClock::start());
        let say = |notice: &Notice<'_>| match notice {
            Notice::NextUrl(url) => print_all(&format!("for a further browser: {url}\n")),
            Notice::Action(line) | Notice::Login(line) => print_all(&format!("{line}\n")),
        };
        let client = logins.connect().await?;
        let opened = Console::open_with((logins, client), clock, &options, say).await;
        let console = opened.with_context(|| format!("listen on {}", options.address))?;
        print_all(&format!(
            "console     {}\nThe URL is good for one browser. Ctrl-C ends the console.\n",
            console.url()
        ));
        tokio::signal::ctrl_c().await.context("listen for Ctrl-C")
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("capm3 console: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs `capm3 why`. The exit code is that of the state: 0 if the object waits for nothing.
fn why(arguments: impl Iterator<Item = String>) -> ExitCode {
    let (wanted, chosen) = match why::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("capm3 why: {error:#}");
            return ExitCode::from(2);
        }
    };
    let answer = block_on(async |requests| {
        let config = load_viewer_config(&chosen).await?;
        let (namespace, now) = (config.default_namespace.clone(), SystemClock::start().now());
        let url = config.cluster_url.to_string();
        let client = reach(requests.connect(config)?, &url).await?;
        wanted.run(&client, &namespace, now.into()).await
    });
    match answer {
        Ok((output, state)) => {
            print_all(&output);
            ExitCode::from(state.exit_code())
        }
        Err(error) => {
            eprintln!("capm3 why: {error:#}");
            ExitCode::FAILURE
        }
    }
}
