//! Objects by a key, in the order in which they came: a sorted list.
//!
//! It is filled a few times and searched often. A map of the standard library brings much more code into the program, again for each
//! type of its entries.

use std::borrow::Borrow;

use crate::order;

/// Values by a key; several may have the same.
#[derive(Debug)]
pub(crate) struct Index<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for Index<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord, V> Index<K, V> {
    pub(crate) fn of(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut index = Self::default();
        index.add(entries);
        index
    }

    /// Adds entries behind those that have the same key.
    pub(crate) fn add(&mut self, entries: impl IntoIterator<Item = (K, V)>) {
        self.entries.extend(entries);
        order::sort_by(&mut self.entries, |a, b| a.0.cmp(&b.0));
    }

    /// The values with this key.
    pub(crate) fn all<Q: Ord + ?Sized>(&self, key: &Q) -> impl Iterator<Item = &V>
    where
        K: Borrow<Q>,
    {
        let begin = self.entries.partition_point(|(other, _)| other.borrow() < key);
        let rest = self.entries.get(begin..).unwrap_or_default();
        let of_key = rest.iter().take_while(move |(other, _)| other.borrow() == key);
        of_key.map(|(_, value)| value)
    }

    /// The first value with this key.
    pub(crate) fn first<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.all(key).next()
    }

    /// All entries, in the order of their keys.
    pub(crate) fn entries(&self) -> &[(K, V)] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_key_are_found_in_the_order_in_which_they_came() {
        let mut index = Index::of([("b", 1), ("a", 2), ("b", 0)]);
        index.add([("a", 3), ("c", 4)]);
        let all = |key: &str| index.all(key).copied().collect::<Vec<i32>>();
        assert_eq!(
            (all("a"), all("b"), all("c"), all("d")),
            (vec![2, 3], vec![1, 0], vec![4], vec![])
        );
        assert_eq!(index.first("b"), Some(&1));
        assert_eq!(index.first("0"), None);
        assert_eq!(index.entries().len(), 5);
    }
}
