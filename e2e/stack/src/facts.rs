use crate::places::Places;
use clap::Args;
use std::path::PathBuf;
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long)]
    document: Option<PathBuf>,
}
pub(crate) fn print_memory(_: &Places) -> anyhow::Result<()> {
    Ok(())
}
pub(crate) fn write(_: &Places, _: &Options) -> anyhow::Result<()> {
    Ok(())
}
