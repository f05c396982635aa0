//! Bounds, lengths, sizes and patterns.

use serde_json::{Map, Number, Value};

use super::Checker;
use crate::error::FieldError;
use crate::golang;
use crate::model::{Bound, Schema};
use crate::number::{Num, is_whole, truncate};
use crate::value_path::ValuePath;

impl Checker<'_> {
    /// The first failing check of length and pattern.
    pub(super) fn string(&self, schema: &Schema, text: &str, at: &ValuePath<'_>) -> Option<FieldError> {
        let limits = &schema.limits;
        let length = text.chars().count();
        if let Some(max) = limits.max_length.filter(|max| exceeds(length, *max)) {
            return Some(FieldError::too_long(self.name(&at.dotted()), max));
        }
        if let Some(min) = limits.min_length.filter(|min| falls_short(length, *min)) {
            return Some(self.invalid(at, text, &format!("should be at least {min} chars long")));
        }
        let pattern = limits
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.regex.is_match(text))?;
        Some(self.invalid(at, text, &format!("should match '{}'", pattern.source)))
    }

    pub(super) fn number(&self, schema: &Schema, number: &Number, at: &ValuePath<'_>) -> Vec<FieldError> {
        let limits = &schema.limits;
        let value = Num::of(number);
        let multiple = limits
            .multiple_of
            .and_then(|factor| self.multiple(value, number, factor, at));
        let bad = |rest: String| self.invalid(at, number.clone(), &rest);
        let bound = |limit: Option<Bound>, side: Side, word: &str| {
            let limit = limit.filter(|limit| breaks(value, *limit, side))?;
            let equal = if limit.exclusive { "" } else { " or equal to" };
            Some(bad(format!(
                "should be {word} than{equal} {}",
                limit_text(value, limit.at)
            )))
        };
        let minimum = bound(limits.minimum, Side::Below, "greater");
        let maximum = bound(limits.maximum, Side::Above, "less");
        [multiple, minimum, maximum].into_iter().flatten().collect()
    }

    /// An integer is checked with the integer part of the factor.
    fn multiple(&self, value: Num, number: &Number, factor: f64, at: &ValuePath<'_>) -> Option<FieldError> {
        let dotted = at.dotted();
        let must_be_positive = |factor: Value, text: String| {
            let detail = format!("factor MultipleOf declared for {dotted} must be positive: {text}");
            FieldError::invalid(self.name(&dotted), factor, detail)
        };
        match value {
            Num::Int(value) => {
                let factor = truncate(factor);
                if factor <= 0 {
                    return Some(must_be_positive(factor.into(), factor.to_string()));
                }
                (value % factor != 0)
                    .then(|| self.invalid(at, number.clone(), &format!("should be a multiple of {factor}")))
            }
            Num::Float(value) => {
                if factor <= 0.0 {
                    return Some(must_be_positive(factor.into(), golang::float(factor)));
                }
                let times = if factor < 1.0 {
                    1.0 / factor * value
                } else {
                    value / factor
                };
                let rest = format!("should be a multiple of {}", golang::float(factor));
                (!is_whole(times)).then(|| self.invalid(at, number.clone(), &rest))
            }
        }
    }

    pub(super) fn list_size(&self, schema: &Schema, items: &[Value], at: &ValuePath<'_>) -> Vec<FieldError> {
        let (limits, size) = (&schema.limits, items.len());
        let mut errors = Vec::new();
        if let Some(min) = limits.min_items.filter(|min| falls_short(size, *min)) {
            errors.push(self.invalid(at, size, &format!("should have at least {min} items")));
        }
        if let Some(max) = limits.max_items.filter(|max| exceeds(size, *max)) {
            errors.push(FieldError::too_many(self.name(&at.dotted()), size, max));
        }
        let repeats = || {
            items
                .iter()
                .enumerate()
                .any(|(index, item)| items.iter().take(index).any(|other| other == item))
        };
        if limits.unique_items && repeats() {
            errors.push(self.invalid(at, "", "shouldn't contain duplicates"));
        }
        errors
    }

    pub(super) fn object_size(&self, schema: &Schema, map: &Map<String, Value>, at: &ValuePath<'_>) -> Vec<FieldError> {
        let (limits, size) = (&schema.limits, map.len());
        let mut errors = Vec::new();
        if let Some(min) = limits.min_properties.filter(|min| falls_short(size, *min)) {
            errors.push(self.invalid(at, size, &format!("should have at least {min} properties")));
        }
        if let Some(max) = limits.max_properties.filter(|max| exceeds(size, *max)) {
            errors.push(FieldError::too_many(self.name(&at.dotted()), size, max));
        }
        errors
    }
}

fn exceeds(size: usize, max: u64) -> bool {
    u64::try_from(size).is_ok_and(|size| size > max)
}

fn falls_short(size: usize, min: u64) -> bool {
    u64::try_from(size).is_ok_and(|size| size < min)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// An integer is compared with the integer part of the bound.
fn breaks(value: Num, bound: Bound, side: Side) -> bool {
    let order = match value {
        Num::Int(value) => Some(value.cmp(&truncate(bound.at))),
        Num::Float(value) => value.partial_cmp(&bound.at),
    };
    order.is_some_and(|order| match side {
        Side::Below => order.is_lt() || (bound.exclusive && order.is_eq()),
        Side::Above => order.is_gt() || (bound.exclusive && order.is_eq()),
    })
}

fn limit_text(value: Num, limit: f64) -> String {
    match value {
        Num::Int(_) => truncate(limit).to_string(),
        Num::Float(_) => golang::float(limit),
    }
}
