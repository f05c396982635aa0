use crate::places::Places;
use clap::Args;
use std::process::ExitCode;
#[derive(Debug, Args)]
pub(crate) struct Options {}
pub(crate) fn prove(_: &Places, _: &Options) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
