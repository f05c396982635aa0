//! Keywords of structural schemas, by the way they are compared.

pub(super) const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
pub(super) const LIST_TYPE: &str = "x-kubernetes-list-type";
pub(super) const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
pub(super) const MAP_TYPE: &str = "x-kubernetes-map-type";
pub(super) const EMBEDDED: &str = "x-kubernetes-embedded-resource";
pub(super) const RULES: &str = "x-kubernetes-validations";

/// Lower bounds, and whether 0 is no bound.
pub(super) const LOWER: [(&str, bool); 4] = [
    ("minimum", false),
    ("minLength", true),
    ("minItems", true),
    ("minProperties", true),
];
pub(super) const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// Flags, of which `false` is the default.
pub(super) const FLAGS: [&str; 7] = [
    "nullable",
    "uniqueItems",
    "exclusiveMinimum",
    "exclusiveMaximum",
    PRESERVE,
    EMBEDDED,
    INT_OR_STRING,
];
/// Members that only restrict documents and have no order.
pub(super) const RESTRICTIONS: [&str; 9] = [
    "pattern",
    "format",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "not",
    EMBEDDED,
    "allOf",
];
/// Members with special rules, or without effect on the API server.
pub(super) const HANDLED: [&str; 21] = [
    "description",
    "title",
    "example",
    "externalDocs",
    "type",
    "enum",
    "default",
    "nullable",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    INT_OR_STRING,
    PRESERVE,
    LIST_TYPE,
    LIST_KEYS,
    MAP_TYPE,
    RULES,
    "x-kubernetes-group-version-kind",
];
