//! Counts the values of a JSON text while it arrives, without parsing it.
//!
//! The sum is an upper limit of the bytes that the parsed values take. Text that is not JSON gets some sum as well; the
//! parser rejects it later.

/// Bytes of an object with members: the first node of its map. A struct takes less.
const OBJECT: usize = 640;
/// Bytes of an object without members: a map allocates nothing, a struct in a list takes less.
const EMPTY: usize = 256;
/// Bytes of a list, besides its items.
const LIST: usize = 96;
/// Bytes of an item or a member: the value, in a list that grows by doubling.
const VALUE: usize = 96;
/// Bytes of a text, besides its characters.
const TEXT: usize = 48;

/// Bytes of a character that an error quotes as `\u{7f}`.
const ESCAPED: usize = 6;

/// Bytes of a byte in a text: the value, or the error that quotes it.
const fn length(byte: u8) -> usize {
    if byte.is_ascii() && !byte.is_ascii_control() {
        1
    } else {
        ESCAPED
    }
}

/// The sum so far.
#[derive(Debug)]
pub(super) struct Scan {
    item_depth: Option<u32>,
    depth: u32,
    /// Whether the last value begins an object.
    is_empty: bool,
    in_text: bool,
    is_escaped: bool,
    current: usize,
    largest: usize,
}

impl Scan {
    /// Sums up the whole text, or each item at a depth.
    pub(super) const fn new(item_depth: Option<u32>) -> Self {
        Self {
            item_depth,
            depth: 0,
            is_empty: false,
            in_text: false,
            is_escaped: false,
            current: 0,
            largest: 0,
        }
    }

    /// Continues with these bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.in_text {
                self.current = self.current.saturating_add(length(*byte));
                self.in_text = self.is_escaped || *byte != b'"';
                self.is_escaped = !self.is_escaped && *byte == b'\\';
            } else {
                self.outside_text(*byte);
            }
        }
        self.largest = self.largest.max(self.current);
    }

    /// The sum, or that of the largest item.
    pub(super) const fn largest(&self) -> usize {
        self.largest
    }

    fn outside_text(&mut self, byte: u8) {
        if byte.is_ascii_whitespace() {
            return;
        }
        let has_members = std::mem::take(&mut self.is_empty) && byte != b'}';
        if has_members {
            self.current = self.current.saturating_add(OBJECT - EMPTY);
        }
        let bytes = match byte {
            b'"' => {
                self.in_text = true;
                TEXT
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.is_empty = byte == b'{';
                if self.is_empty { EMPTY + VALUE } else { LIST + VALUE }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                0
            }
            b',' if Some(self.depth) == self.item_depth => {
                self.largest = self.largest.max(self.current);
                self.current = 0;
                VALUE
            }
            b',' => VALUE,
            _ => 0,
        };
        self.current = self.current.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: &str, item_depth: Option<u32>) -> usize {
        let mut scan = Scan::new(item_depth);
        // Byte by byte, as the slowest connection sends it.
        for byte in text.as_bytes() {
            scan.feed(&[*byte]);
        }
        scan.largest()
    }

    #[test]
    fn the_sum_counts_values_and_not_characters_in_texts() {
        let table = [
            ("7", 0),
            (r#""ab""#, TEXT + 3),
            (r#""\"{[,""#, TEXT + 6),
            (r#""\\",7"#, TEXT + 3 + VALUE),
            ("\"a\u{7f}\"", TEXT + 2 + ESCAPED),
            ("[7, 7]", LIST + 2 * VALUE),
            (r#"{"a":7}"#, OBJECT + VALUE + TEXT + 2),
            ("{},{ }", 2 * EMPTY + 3 * VALUE),
            (r#"{ "a":{}}"#, OBJECT + EMPTY + 2 * VALUE + TEXT + 2),
        ];
        for (text, expected) in table {
            assert_eq!(sum(text, None), expected, "{text}");
        }
    }

    #[test]
    fn items_are_counted_one_at_a_time() {
        let large = format!("[{}]", "{},".repeat(50));
        let one = sum(&large, None);
        let list = |items: &str| format!(r#"{{"request":{{"objects":[{items}]}}}}"#);
        let several = sum(&list(&[large.as_str(); 9].join(",")), Some(3));
        assert!(several >= one && several < 2 * one, "{several} {one}");
        let together = sum(&list(&large), Some(3));
        assert!(together >= one && together < 2 * one, "{together} {one}");
        // The items of a list inside an item belong to it.
        assert!(sum(&list(&format!("[[{large}]]")), Some(3)) > one);
    }

    #[test]
    fn the_sum_is_an_upper_limit_for_parsed_values() {
        // Sizes of the parts of a parsed value, as the allocator is asked for them.
        assert!(VALUE >= 3 * size_of::<serde_json::Value>());
        assert!(TEXT >= size_of::<String>() + 16);
        let node = 11 * (size_of::<String>() + size_of::<serde_json::Value>()) + 16;
        assert!(OBJECT >= node, "{node}");
    }
}
