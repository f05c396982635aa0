//! Contents that are overwritten when they are dropped.

use std::fmt;
use std::ops::Deref;

use k8s_openapi::api::core::v1::Secret;
use secrecy::zeroize::Zeroize as _;

/// A kind with content that does not stay in memory.
pub trait Erase {
    /// Overwrites the content.
    fn erase(&mut self);
}

impl Erase for Secret {
    fn erase(&mut self) {
        for value in self.data.iter_mut().flat_map(|data| data.values_mut()) {
            value.0.zeroize();
        }
        for value in self.string_data.iter_mut().flat_map(|data| data.values_mut()) {
            value.zeroize();
        }
    }
}

/// An object whose content is overwritten when the last holder drops it. What the holder copies is not.
#[derive(PartialEq)]
pub struct Erased<K: Erase>(K);

impl<K: Erase> Erased<K> {
    /// Takes an object over.
    pub const fn new(object: K) -> Self {
        Self(object)
    }
}

impl<K: Erase> fmt::Debug for Erased<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Erased(not shown)")
    }
}

impl<K: Erase> Deref for Erased<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

impl<K: Erase> Drop for Erased<K> {
    fn drop(&mut self) {
        self.0.erase();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::ByteString;
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn all_values_of_a_secret_are_erased() {
        let value = || ByteString(b"hunter2".to_vec());
        let mut secret = Secret {
            data: Some([("a".to_owned(), value()), ("b".to_owned(), value())].into()),
            string_data: Some([("c".to_owned(), "hunter2".to_owned())].into()),
            ..Secret::default()
        };
        secret.erase();
        assert!(secret.data.unwrap().into_values().all(|value| value.0.is_empty()));
        assert!(secret.string_data.unwrap().into_values().all(|value| value.is_empty()));
    }

    struct Counted(Arc<Mutex<usize>>);

    impl Erase for Counted {
        fn erase(&mut self) {
            *self.0.lock() += 1;
        }
    }

    #[test]
    fn an_object_is_erased_once_by_its_last_holder() {
        let count = Arc::new(Mutex::new(0));
        let object = Arc::new(Erased::new(Counted(Arc::clone(&count))));
        drop(Arc::clone(&object));
        assert_eq!(*count.lock(), 0);
        drop(object);
        assert_eq!(*count.lock(), 1);
    }
}
