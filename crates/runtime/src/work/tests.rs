mod outcomes;
mod passes;
mod waking;
