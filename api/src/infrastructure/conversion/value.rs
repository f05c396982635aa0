//! Single values: narrowed numbers, optional texts, shortened references.

use super::error::{ConversionError, Inside};
use crate::infrastructure::v1beta2::Metal3ObjectRef;
use crate::meta::ObjectReference;

/// Converts an integer to the 32 bits of the newer version.
pub(super) fn narrow(number: i64, field: &str) -> Result<i32, ConversionError> {
    i32::try_from(number).map_err(|_| {
        ConversionError::new(
            field,
            format!("{number} does not fit into 32 bits"),
            format!("use a number from {} to {}", i32::MIN, i32::MAX),
        )
    })
}

/// The same for a number that may be absent.
pub(super) fn narrow_option(number: Option<i64>, field: &str) -> Result<Option<i32>, ConversionError> {
    number.map(|number| narrow(number, field)).transpose()
}

/// The same, with 0 as absent.
pub(super) fn narrow_nonzero(number: Option<i64>, field: &str) -> Result<Option<i32>, ConversionError> {
    narrow_option(number.filter(|number| *number != 0), field)
}

/// Converts an integer to the older version, with 0 as absent.
pub(super) fn widen_nonzero(number: Option<i32>) -> Option<i64> {
    number.filter(|number| *number != 0).map(i64::from)
}

/// The text, unless it is empty.
pub(super) fn text(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

/// The value, unless it is its type's default.
pub(super) fn non_default<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// Name and namespace of a reference; the newer version has no other members.
pub(super) fn metal3_reference(reference: &ObjectReference) -> Metal3ObjectRef {
    Metal3ObjectRef {
        name: text(reference.name.as_ref()),
        namespace: text(reference.namespace.as_ref()),
    }
}

/// An object reference with name and namespace.
pub(super) fn object_reference(reference: &Metal3ObjectRef) -> ObjectReference {
    ObjectReference {
        name: reference.name.clone(),
        namespace: reference.namespace.clone(),
        ..ObjectReference::default()
    }
}

/// Converts the items of a list. An error names the item.
pub(super) fn list<A, B>(
    items: &[A],
    field: &str,
    convert: impl Fn(&A) -> Result<B, ConversionError>,
) -> Result<Vec<B>, ConversionError> {
    items
        .iter()
        .enumerate()
        .map(|(index, item)| convert(item).inside(&format!("{field}[{index}]")))
        .collect()
}
