//! Inputs from a pool of inputs, by changes of text and of JSON trees.

mod text;
mod tree;

use metal3_sim_faults::Random;
use serde_json::Value;

use crate::chance::{below, yaml};
use crate::dictionary::Dictionary;
use crate::pool::Pool;
use crate::target::{Shape, Target};

/// Longest input. It bounds the work of a parser without a clock.
pub const LONGEST: usize = 16 << 10;

/// The next input for a target. One of three comes from the sweep, while it has any.
pub(crate) fn input(target: &Target, pool: &mut Pool, dictionary: &Dictionary, random: &mut Random) -> Vec<u8> {
    if random.below(3) == 0
        && let Some(made) = pool.sweep.next(target.words)
    {
        return made;
    }
    let base = pool.pick(random).to_vec();
    let other = pool.pick(random);
    // One change in most cases: each further one may destroy what the others need.
    let most = 1 << below(random, 3);
    let changes = 1 + below(random, most);
    let mut made = match target.shape {
        Shape::Text => text(dictionary, base, other, changes, random),
        Shape::Yaml if random.below(3) == 0 => text(dictionary, base, other, changes, random),
        Shape::Json | Shape::Document(_) if random.below(10) == 0 => text(dictionary, base, other, changes, random),
        Shape::Json => json(dictionary, parsed(&base), &parsed(other), changes, random),
        Shape::Yaml => match yaml(&base) {
            Some(tree) => json(dictionary, tree, &yaml(other).unwrap_or_default(), changes, random),
            None => text(dictionary, base, other, changes, random),
        },
        Shape::Document(draw) => {
            let fresh = random.below(2) == 0;
            let base = if fresh { draw(random) } else { parsed(&base) };
            let changes = if fresh { below(random, 3) } else { changes };
            json(dictionary, base, &parsed(other), changes, random)
        }
    };
    made.truncate(LONGEST);
    made
}

fn parsed(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or(Value::Null)
}

fn text(dictionary: &Dictionary, mut base: Vec<u8>, other: &[u8], changes: usize, random: &mut Random) -> Vec<u8> {
    for _ in 0..changes {
        text::change(dictionary, &mut base, other, random);
    }
    base
}

fn json(dictionary: &Dictionary, mut base: Value, other: &Value, changes: usize, random: &mut Random) -> Vec<u8> {
    for _ in 0..changes {
        tree::change(dictionary, &mut base, other, random);
    }
    base.to_string().into_bytes()
}
