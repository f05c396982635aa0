//! Paths from the root of an object to a value.
//!
//! A path is a linked list on the stack and allocates only when an error needs its text. It has two formats, as in the
//! API server: schema validation writes a map's key after a dot, all other checks write it in brackets.

use std::fmt;

/// One step of a path, linked to its parent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValuePath<'a> {
    /// The object itself.
    Root,
    /// A declared property.
    Field(&'a ValuePath<'a>, &'a str),
    /// An entry of a map.
    Key(&'a ValuePath<'a>, &'a str),
    /// An item of a list.
    Item(&'a ValuePath<'a>, usize),
}

impl<'a> ValuePath<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> ValuePath<'a> {
        ValuePath::Field(self, name)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> ValuePath<'a> {
        ValuePath::Key(self, key)
    }

    pub(crate) fn item(&'a self, index: usize) -> ValuePath<'a> {
        ValuePath::Item(self, index)
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, ValuePath::Root)
    }

    /// `spec.labels.app`: the format of schema validation and of unknown fields. A map at the root starts with a dot.
    pub(crate) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write_dotted(&mut text);
        text
    }

    /// `spec.labels[app]`: the format of all other checks. The root is `<nil>`, as in the API server.
    pub(crate) fn bracketed(&self) -> String {
        if self.is_root() {
            String::from("<nil>")
        } else {
            self.to_string()
        }
    }

    fn write_dotted(&self, text: &mut String) {
        match self {
            ValuePath::Root => {}
            ValuePath::Field(parent, name) => {
                parent.write_dotted(text);
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            ValuePath::Key(parent, key) => {
                parent.write_dotted(text);
                text.push('.');
                text.push_str(key);
            }
            ValuePath::Item(parent, index) => {
                parent.write_dotted(text);
                text.push_str(&format!("[{index}]"));
            }
        }
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Root => Ok(()),
            ValuePath::Field(parent, name) if parent.is_root() => f.write_str(name),
            ValuePath::Field(parent, name) => write!(f, "{parent}.{name}"),
            ValuePath::Key(parent, key) => write!(f, "{parent}[{key}]"),
            ValuePath::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ValuePath;

    #[test]
    fn map_keys_are_dotted_in_one_format_and_bracketed_in_the_other() {
        let (root, spec) = (ValuePath::Root, ValuePath::Field(&ValuePath::Root, "spec"));
        let labels = spec.field("labels");
        let app = labels.key("app");
        let second = app.item(2);
        assert_eq!(second.dotted(), "spec.labels.app[2]");
        assert_eq!(second.bracketed(), "spec.labels[app][2]");
        assert_eq!(root.key("a").dotted(), ".a");
        assert_eq!(root.bracketed(), "<nil>");
    }
}
