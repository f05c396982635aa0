//! A claim, its proof, and the line that reports it.

use std::process::ExitCode;

/// Figures to print, or an empty text.
pub(crate) type Proof = anyhow::Result<String>;

/// A name and its proof, a function.
pub(crate) type Claim<P> = (&'static str, P);

/// Prints one line per claim, with the error of a failed one.
pub(crate) fn report(name: &str, proof: Proof) -> bool {
    let name = name.replace('_', " ");
    match proof {
        Ok(figures) if figures.is_empty() => println!("holds  {name}"),
        Ok(figures) => println!("holds  {name}: {figures}"),
        Err(error) => {
            println!("FAILS  {name}\n       {error:#}");
            return false;
        }
    }
    true
}

pub(crate) fn exit_code(held: bool) -> ExitCode {
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
