//! What the generator knows of a grammar: words, and the values that each name has in the corpus.

use std::collections::{BTreeMap, BTreeSet};

use metal3_sim_faults::Random;
use serde_json::Value;

use crate::chance::{below, yaml};
use crate::target::{Shape, Target};

/// Most values that are kept for one name.
const VALUES: usize = 64;

/// The words and values of a target.
pub(crate) struct Dictionary {
    /// The words that the target lists.
    listed: &'static [&'static str],
    /// The words of its corpus.
    read: Vec<String>,
    /// The values of each name in its corpus. The name of an item is the name of its list with `[]`.
    values: BTreeMap<String, Vec<Value>>,
}

impl Dictionary {
    /// The dictionary of a target and its corpus.
    pub(crate) fn of(target: &Target, corpus: &[Vec<u8>]) -> Self {
        let mut read = BTreeSet::new();
        let mut values = BTreeMap::new();
        for input in corpus {
            read.extend(words(input).map(|word| String::from_utf8_lossy(word).into_owned()));
            let tree = match target.shape {
                Shape::Text => None,
                Shape::Yaml => yaml(input),
                Shape::Json | Shape::Document(_) => serde_json::from_slice(input).ok(),
            };
            if let Some(tree) = tree {
                read_tree(&tree, "", &mut values, &mut read);
            }
        }
        Self {
            listed: target.words,
            read: read.into_iter().collect(),
            values,
        }
    }

    /// A word, mostly one that the target lists.
    pub(crate) fn word(&self, random: &mut Random) -> &str {
        let listed = random.pick(self.listed).copied();
        let read = random.pick(&self.read).map(String::as_str);
        let first = if random.below(4) == 0 { read } else { listed };
        first.or(listed).or(read).unwrap_or("a")
    }

    /// A value that the name has in the corpus.
    pub(crate) fn value(&self, name: &str, random: &mut Random) -> Option<&Value> {
        let values = self.values.get(name)?;
        values.get(below(random, values.len()))
    }

    /// All words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        let listed = self.listed.iter().flat_map(|word| words(word.as_bytes()));
        listed.chain(self.read.iter().flat_map(|word| words(word.as_bytes())))
    }
}

fn read_tree(tree: &Value, name: &str, values: &mut BTreeMap<String, Vec<Value>>, read: &mut BTreeSet<String>) {
    let of_name = values.entry(name.to_owned()).or_default();
    if of_name.len() < VALUES && !of_name.contains(tree) {
        of_name.push(tree.clone());
    }
    match tree {
        Value::Array(items) => {
            let name = format!("{name}[]");
            items.iter().for_each(|item| read_tree(item, &name, values, read));
        }
        Value::Object(members) => {
            for (name, member) in members {
                read.insert(name.clone());
                read_tree(member, name, values, read);
            }
        }
        Value::String(text) if text.len() <= 64 => drop(read.insert(text.clone())),
        _ => {}
    }
}

/// Whether the byte belongs to a word.
pub(crate) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The runs of letters and digits.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| !is_word(*byte)).filter(|word| !word.is_empty())
}
