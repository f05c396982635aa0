//! Image names and the table of their binaries.

/// The last path element of an image's name, without tag and digest: the key of the table.
pub(crate) fn short_name(image: &str) -> &str {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split(':').next().unwrap_or(last)
}

/// The content of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content<'a> {
    pub(crate) binary: &'a str,
    /// More files: the path in the container, and the path on the machine.
    pub(crate) files: Vec<(&'a str, &'a str)>,
}

/// The content of an image. A row is `NAME PATH [TARGET=PATH ...]`; `#` starts a comment; the first row of a name wins.
pub(crate) fn content_of<'a>(table: &'a str, image: &str) -> Option<Content<'a>> {
    let wanted = short_name(image);
    table.lines().find_map(|line| {
        let mut fields = line.split('#').next().unwrap_or_default().split_whitespace();
        let is_wanted = fields.next() == Some(wanted);
        let binary = is_wanted.then(|| fields.next()).flatten()?;
        let files = fields.filter_map(|field| field.split_once('=')).collect();
        Some(Content { binary, files })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_identified_by_its_last_element() {
        let table = [
            ("registry.example:5000/team/manager:v1.2.3", "manager"),
            ("manager", "manager"),
            ("example.org/manager@sha256:0123", "manager"),
            ("example.org/a/manager:v1@sha256:0123", "manager"),
            ("", ""),
        ];
        for (image, name) in table {
            assert_eq!(short_name(image), name, "{image}");
        }
    }

    #[test]
    fn the_table_ignores_comments_and_unknown_names() {
        let table = "# name path\nmanager /bin/m # ours\n\nmanager /bin/other\nbroken\n";
        let binary = |image| content_of(table, image).map(|content| content.binary);
        assert_eq!(binary("r/manager:v1"), Some("/bin/m"));
        assert_eq!(binary("r/manage"), None);
        assert_eq!(binary("broken"), None, "a row without path names no binary");
        assert_eq!(content_of("", "x"), None);
    }

    #[test]
    fn a_row_may_name_more_files_than_the_binary() {
        let found = content_of("manager /bin/m /plugins/a.so=/build/a.so /b=/c # two", "r/manager:v1").unwrap();
        assert_eq!(found.binary, "/bin/m");
        assert_eq!(found.files, [("/plugins/a.so", "/build/a.so"), ("/b", "/c")]);
    }
}
