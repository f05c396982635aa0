//! The way from the root of an object to one of its values.
//!
//! A trail lives on the stack while a tree is walked and costs nothing until an error needs its text. It has two
//! spellings, because the API server has two: schema validation writes a map's key behind a dot, everything else puts
//! it in brackets. It never allocates by itself.

use std::fmt;

/// One step of a walk, linked to the steps before it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trail<'a> {
    /// The object itself.
    Root,
    /// A property that the schema names.
    Field(&'a Trail<'a>, &'a str),
    /// An entry of a map.
    Key(&'a Trail<'a>, &'a str),
    /// An item of a list.
    Item(&'a Trail<'a>, usize),
}

impl<'a> Trail<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> Trail<'a> {
        Trail::Field(self, name)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Trail<'a> {
        Trail::Key(self, key)
    }

    pub(crate) fn item(&'a self, index: usize) -> Trail<'a> {
        Trail::Item(self, index)
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Trail::Root)
    }

    /// `spec.labels.app`: the spelling of schema validation and of unknown fields. A map at the root starts with a dot.
    pub(crate) fn dotted(&self) -> String {
        let mut text = String::new();
        self.write_dotted(&mut text);
        text
    }

    /// `spec.labels[app]`: the spelling of every other check. The root is `<nil>`, as the API server prints it.
    pub(crate) fn bracketed(&self) -> String {
        if self.is_root() {
            String::from("<nil>")
        } else {
            self.to_string()
        }
    }

    fn write_dotted(&self, text: &mut String) {
        match self {
            Trail::Root => {}
            Trail::Field(parent, name) => {
                parent.write_dotted(text);
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Trail::Key(parent, key) => {
                parent.write_dotted(text);
                text.push('.');
                text.push_str(key);
            }
            Trail::Item(parent, index) => {
                parent.write_dotted(text);
                text.push_str(&format!("[{index}]"));
            }
        }
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trail::Root => Ok(()),
            Trail::Field(parent, name) if parent.is_root() => f.write_str(name),
            Trail::Field(parent, name) => write!(f, "{parent}.{name}"),
            Trail::Key(parent, key) => write!(f, "{parent}[{key}]"),
            Trail::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Trail;

    #[test]
    fn map_keys_are_dotted_in_one_spelling_and_bracketed_in_the_other() {
        let (root, spec) = (Trail::Root, Trail::Field(&Trail::Root, "spec"));
        let labels = spec.field("labels");
        let app = labels.key("app");
        let second = app.item(2);
        assert_eq!(second.dotted(), "spec.labels.app[2]");
        assert_eq!(second.bracketed(), "spec.labels[app][2]");
        assert_eq!(root.key("a").dotted(), ".a");
        assert_eq!(root.bracketed(), "<nil>");
    }
}
