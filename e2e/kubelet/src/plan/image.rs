//! Image names and the table that says which binary stands for which image.

/// The last path element of an image's name, without tag and digest: what the table is keyed by.
pub(crate) fn short_name(image: &str) -> &str {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split(':').next().unwrap_or(last)
}

/// The binary for an image. A row is `NAME PATH`; `#` starts a comment; the first row of a name wins.
pub(crate) fn binary_for<'a>(table: &'a str, image: &str) -> Option<&'a str> {
    let wanted = short_name(image);
    table.lines().find_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        (words.next() == Some(wanted)).then(|| words.next()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_last_element() {
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
