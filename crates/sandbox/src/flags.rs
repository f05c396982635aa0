//! The command line of the sandbox.

use std::path::{Path, PathBuf};

/// What `--help` prints.
pub(super) const HELP: &str = "\
capm3 sandbox: runs the controllers with a simulated management cluster, Ironic, machines and Cluster API in one process

  --once              exit when the reference cluster is ready (0), or print why it is not (1)
  --bare              start with hosts only, without the reference cluster
  --scenario NAME     play a script with pauses and explanations instead of the reference cluster; `list` names them
  --pause SECONDS     pause before each step of the script (default 3 on a terminal, else 0)
  --hosts N           number of hosts (default 5)
  --speed N           how many times faster than real hardware, at most 10000 (default 40)
  --seed N            seed of names and UIDs (default 1)
  --port N            loopback port of the API server (default: any free port)
  --kubeconfig FILE   file for the kubeconfig (default sandbox.kubeconfig in the home directory)
";

/// The display looks at changes in steps of real time: in one step of more world time whole scripts would pass.
const MOST_SPEED: u32 = 10_000;

/// The parsed flags.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flags {
    pub(super) once: bool,
    pub(super) bare: bool,
    /// The script to play, or `list`.
    pub(super) scenario: Option<String>,
    /// Seconds before each step of the script.
    pub(super) pause: Option<u32>,
    /// Number of hosts, if stated.
    pub(super) hosts: Option<u32>,
    pub(super) speed: u32,
    pub(super) seed: u64,
    pub(super) port: u16,
    pub(super) kubeconfig: PathBuf,
    /// Whether the output is a terminal that shows pictures: no flag.
    pub(super) is_screen: bool,
}

impl Flags {
    /// Reads the arguments; `None` for `--help`. The default kubeconfig is below `home`, because a predictable name in a
    /// world-writable directory could be another user's symlink.
    pub(super) fn parse(mut arguments: impl Iterator<Item = String>, home: &Path) -> Result<Option<Self>, String> {
        let mut flags = Self {
            once: false,
            bare: false,
            scenario: None,
            pause: None,
            hosts: None,
            speed: 40,
            seed: 1,
            port: 0,
            kubeconfig: home.join("sandbox.kubeconfig"),
            is_screen: false,
        };
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            let mut value = || {
                let value = value.clone().or_else(|| arguments.next());
                value.ok_or_else(|| format!("{name}: needs a value"))
            };
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--once" => flags.once = true,
                "--bare" => flags.bare = true,
                "--scenario" => flags.scenario = Some(value()?),
                "--pause" => flags.pause = Some(number(&name, &value()?)?),
                "--hosts" => flags.hosts = Some(number(&name, &value()?)?),
                "--speed" => flags.speed = number(&name, &value()?)?,
                "--seed" => flags.seed = number(&name, &value()?)?,
                "--port" => flags.port = number(&name, &value()?)?,
                "--kubeconfig" => flags.kubeconfig = value()?.into(),
                _ => return Err(format!("{name}: not a flag of the sandbox; --help lists them")),
            }
        }
        flags.check()?;
        Ok(Some(flags))
    }

    /// Rejects values and combinations without a meaning.
    fn check(&self) -> Result<(), String> {
        let has_script = self.scenario.is_some();
        let faults = [
            (
                !(1..=MOST_SPEED).contains(&self.speed),
                "--speed: must be from 1, the speed of real hardware, to 10000",
            ),
            (
                self.bare && has_script,
                "--bare: a script says itself which hosts there are; leave out --bare or --scenario",
            ),
            (
                self.bare && self.once,
                "--once: waits for the reference cluster, which --bare leaves out; leave out --once or --bare",
            ),
            (
                self.hosts.is_some() && has_script,
                "--hosts: a script says itself which hosts there are; leave out --hosts or --scenario",
            ),
            (
                self.pause.is_some() && !has_script,
                "--pause: is before each step of a script; name one by --scenario",
            ),
        ];
        let fault = faults.into_iter().find(|(is_fault, _)| *is_fault);
        fault.map_or(Ok(()), |(_, why)| Err(why.to_owned()))
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{name}: {text:?} is not a number in range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Flags>, String> {
        Flags::parse(line.split_whitespace().map(str::to_owned), Path::new("/home/me"))
    }

    #[test]
    fn flags_are_read_in_both_spellings() {
        let flags = parse("--once --hosts 7 --speed=10 --kubeconfig /tmp/x")
            .unwrap()
            .unwrap();
        assert!(flags.once && !flags.bare);
        assert_eq!(
            (flags.hosts, flags.speed, flags.kubeconfig),
            (Some(7), 10, PathBuf::from("/tmp/x"))
        );
        let flags = parse("--scenario=pools --pause 0").unwrap().unwrap();
        assert_eq!((flags.scenario.as_deref(), flags.pause), (Some("pools"), Some(0)));
        assert_eq!(parse("--once --help"), Ok(None));
        let default = parse("").unwrap().unwrap().kubeconfig;
        assert_eq!(default, PathBuf::from("/home/me/sandbox.kubeconfig"));
    }

    #[test]
    fn errors_name_the_flag() {
        for (line, flag) in [
            ("--hots 1", "--hots"),
            ("--hosts 3 --scenario pools", "--hosts"),
            ("--pause 3", "--pause"),
            ("--hosts", "--hosts"),
            ("--hosts many", "--hosts"),
            ("--port 70000", "--port"),
            ("--speed 0", "--speed"),
            ("--speed 10001", "--speed"),
            ("--bare --once", "--once"),
            ("once", "once"),
            ("--scenario", "--scenario"),
            ("--pause x", "--pause"),
            ("--bare --scenario pools", "--bare"),
        ] {
            assert!(parse(line).unwrap_err().starts_with(flag), "{line}");
        }
    }
}
