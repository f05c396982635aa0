//! The real helm and the two charts.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::claims::stack::Stack;

/// Namespace of both charts.
pub(crate) const NAMESPACE: &str = "metal3-system";
pub(crate) const DEFINITIONS: &str = "metal3-rs-crds";
pub(crate) const PROGRAM: &str = "metal3-rs";

pub(crate) struct Helm<'a> {
    pub(crate) stack: &'a Stack,
    /// The program.
    pub(crate) helm: &'a Path,
    /// The folder of the charts.
    pub(crate) charts: &'a Path,
}

impl Helm<'_> {
    /// Runs helm in the namespace of the charts.
    pub(crate) fn run(&self, arguments: &[&str], input: Option<&str>) -> anyhow::Result<String> {
        let program = self.helm.to_str().context("the path of helm is not text")?;
        let own = ["--namespace", NAMESPACE];
        self.stack.run(program, &[arguments, &own].concat(), input)
    }

    fn chart(&self, name: &str) -> PathBuf {
        self.charts.join(name)
    }

    /// `install` or `upgrade` of a chart.
    pub(crate) fn apply(&self, verb: &str, chart: &str, more: &[&str], values: Option<&Value>) -> anyhow::Result<()> {
        let folder = self.chart(chart);
        let folder = folder.to_str().context("the path of the charts is not text")?;
        let mut arguments = vec![verb, chart, folder];
        arguments.extend(more);
        if values.is_some() {
            // Through standard input, so that no login is in the process list.
            arguments.extend(["--values", "-"]);
        }
        let values = values.map(Value::to_string);
        self.run(&arguments, values.as_deref()).map(drop)
    }

    /// The objects of the installed release, as YAML.
    pub(crate) fn manifest(&self, chart: &str) -> anyhow::Result<String> {
        self.run(&["get", "manifest", chart], None)
    }

    /// The names of these objects that exist.
    pub(crate) fn existing(&self, manifest: &str) -> anyhow::Result<Vec<String>> {
        let arguments = ["get", "--ignore-not-found", "--output=name", "--filename", "-"];
        let names = self.stack.run("kubectl", &arguments, Some(manifest))?;
        Ok(names.lines().map(str::to_owned).collect())
    }
}
