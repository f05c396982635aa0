//! Image names and the table of their binaries.

/// The last path element of an image's name, without tag and digest: the key of the table.
pub(crate) fn short_name(image: &str) -> &str {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split(':').next().unwrap_or(last)
}

/// The binary of an image. A row is `NAME PATH`; `#` starts a comment; the first row of a name wins.
pub(crate) fn binary_for<'a>(table: &'a str, image: &str) -> Option<&'a str> {
    let wanted = short_name(image);
    table.lines().find_map(|line| {
        let mut fields = line.split('#').next().unwrap_or_default().split_whitespace();
        (fields.next() == Some(wanted)).then(|| fields.next()).flatten()
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
        assert_eq!(binary_for(table, "r/manager:v1"), Some("/bin/m"));
        assert_eq!(binary_for(table, "r/manage"), None);
        assert_eq!(binary_for(table, "broken"), None, "a row without path names no binary");
        assert_eq!(binary_for("", "x"), None);
    }
}
