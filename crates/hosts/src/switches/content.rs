//! What the two Secrets are to contain, and the writes that lead there. Pure.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use secrecy::zeroize::Zeroizing;

use super::CONFIG_KEY;
use super::file::{self, HEADER, Problem, Section};
use super::plan::{Facts, Which, Write};
use crate::names::switch_reason::{CREDENTIAL_ERROR, TOO_LARGE};

/// Bytes of all sections, and of all private keys. A Secret has 1 MiB at most, and may have other content.
const LARGEST: usize = 900 * 1024;

/// What the two Secrets are to contain.
#[derive(Default)]
pub(super) struct Content {
    sections: BTreeMap<String, Zeroizing<String>>,
    keys: BTreeMap<String, ByteString>,
    /// Those that stay unless a switch has another one in the same file.
    kept: BTreeMap<String, ByteString>,
    size: usize,
    size_of_keys: usize,
}

impl Content {
    pub(super) fn add(&mut self, name: &str, section: Section) -> Result<(), Problem> {
        let key = section.key.as_ref();
        let size = self.size.saturating_add(section.text.len());
        let size_of_keys = self.size_of_keys.saturating_add(key.map_or(0, |(_, key)| key.0.len()));
        if size > LARGEST || size_of_keys > LARGEST {
            let why = "the Secrets for Ironic are full; delete switches, or move some to another namespace";
            return Err(Problem::new(TOO_LARGE, why));
        }
        if let Some((file, key)) = section.key {
            if self.keys.get(&file).is_some_and(|other| *other != key) {
                let why =
                    "a switch before it has the same spec.macAddress and another private key; correct one of them";
                return Err(Problem::new(CREDENTIAL_ERROR, why));
            }
            self.keys.insert(file, key);
        }
        (self.size, self.size_of_keys) = (size, size_of_keys);
        self.sections.insert(name.to_owned(), section.text);
        Ok(())
    }

    /// Keeps what is stored for a switch of which something is not known.
    pub(super) fn keep(
        &mut self,
        stored: &BTreeMap<String, Zeroizing<String>>,
        name: &str,
        keys: Option<&BTreeMap<String, ByteString>>,
    ) {
        let Some(section) = stored.get(name) else { return };
        self.size = self.size.saturating_add(section.len());
        self.sections.insert(name.to_owned(), section.clone());
        let file = file::key_file(section);
        if let Some((file, key)) = file.and_then(|file| Some((file, keys?.get(file)?))) {
            self.size_of_keys = self.size_of_keys.saturating_add(key.0.len());
            self.kept.insert(file.to_owned(), key.clone());
        }
    }

    fn file(&self) -> ByteString {
        let mut file = HEADER.to_owned();
        for section in self.sections.values() {
            file.push_str(section);
        }
        ByteString(file.into_bytes())
    }
}

/// A key is written before a section that names it, and removed after it: each prefix is a file whose keys exist. Before the
/// first key there is an empty file, which says that the keys are of this program: they are removed with their switch, even
/// if this process ends before it has written the section.
///
/// differs (`switch-secrets-shared`): the Go manager removes all other content of the two Secrets.
pub(super) fn writes(facts: &Facts<'_>, content: Content) -> Vec<Write> {
    let none = BTreeMap::new();
    let stored = facts.keys.data().unwrap_or(&none);
    let file = content.file();
    let former = facts.configs.data().and_then(|data| data.get(CONFIG_KEY));
    let is_blank = former.is_none_or(|text| text.0.is_empty());
    let has_file = former == Some(&file);
    let mut keys = content.kept;
    keys.extend(content.keys);
    let removed = stored
        .keys()
        .filter(|name| file::is_key_file(name) && !keys.contains_key(*name));
    let removed: BTreeMap<String, _> = removed.map(|name| (name.clone(), None)).collect();
    let changed = keys.into_iter().filter(|(name, key)| stored.get(name) != Some(key));
    let changed: BTreeMap<String, _> = changed.map(|(name, key)| (name, Some(key))).collect();
    let one = |is_written: bool, file: ByteString| -> BTreeMap<String, _> {
        let file = is_written.then_some((CONFIG_KEY.to_owned(), Some(file)));
        file.into_iter().collect()
    };
    let begin = one(is_blank && !changed.is_empty(), ByteString(HEADER.as_bytes().to_vec()));
    let writes = [
        (Which::Configs, begin),
        (Which::Keys, changed),
        (Which::Configs, one(!has_file, file)),
        (Which::Keys, removed),
    ];
    let writes = writes.into_iter().filter(|(_, values)| !values.is_empty());
    writes.map(|(which, values)| Write { which, values }).collect()
}
