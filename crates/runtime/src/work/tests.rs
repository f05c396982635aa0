mod outcomes;
mod passes;
