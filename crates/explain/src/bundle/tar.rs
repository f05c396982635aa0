//! An archive in the format `ustar`.

/// Bytes of a block.
const BLOCK: usize = 512;
/// Bytes of a name, and of the folder before it.
const NAME: usize = 100;
const PREFIX: usize = 155;

/// An archive with these files. A name that does not fit is shortened, and gets its number.
#[must_use]
pub fn archive(files: &[(String, String)], seconds: i64) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, (name, text)) in files.iter().enumerate() {
        let (prefix, name) = split(name, number);
        out.extend(header(&prefix, &name, text.len(), seconds));
        out.extend(text.as_bytes());
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

/// A name in two parts that fit.
fn split(name: &str, number: usize) -> (String, String) {
    if name.len() <= NAME {
        return (String::new(), name.to_owned());
    }
    match name.rsplit_once('/') {
        Some((folder, file)) if folder.len() <= PREFIX && file.len() <= NAME => (folder.to_owned(), file.to_owned()),
        _ => {
            let short: String = name.chars().filter(char::is_ascii).take(80).collect();
            (String::new(), format!("{short}-{number}"))
        }
    }
}

fn header(prefix: &str, name: &str, size: usize, seconds: i64) -> Vec<u8> {
    let number = |value: u64, width: usize| format!("{value:0width$o}\0").into_bytes();
    let fixed = |text: &str, width: usize| {
        let mut field = text.as_bytes().to_vec();
        field.resize(width, 0);
        field
    };
    let head = [
        fixed(name, NAME),
        number(0o600, 7),
        number(0, 7),
        number(0, 7),
        number(u64::try_from(size).unwrap_or_default(), 11),
        number(u64::try_from(seconds).unwrap_or_default(), 11),
    ]
    .concat();
    let tail = [
        b"0".to_vec(),
        fixed("", NAME),
        b"ustar\x0000".to_vec(),
        fixed("", 32),
        fixed("", 32),
        number(0, 7),
        number(0, 7),
        fixed(prefix, PREFIX),
    ]
    .concat();
    // The sum counts its own field as blanks.
    let sum: u64 = head
        .iter()
        .chain(b"        ")
        .chain(&tail)
        .map(|byte| u64::from(*byte))
        .sum();
    let mut block = [head, number(sum, 6), b" ".to_vec(), tail].concat();
    block.resize(BLOCK, 0);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_has_a_header_and_whole_blocks_for_each_file() {
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        let files = [("a.txt", "hello"), (long.as_str(), "")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let archive = archive(&files, 8);
        assert_eq!(archive.len(), 5 * BLOCK);
        assert_eq!(
            (&archive[..5], &archive[257..263]),
            (b"a.txt".as_slice(), b"ustar\0".as_slice())
        );
        assert_eq!(
            (&archive[124..136], &archive[136..148]),
            (b"00000000005\0".as_slice(), b"00000000010\0".as_slice())
        );
        assert_eq!(&archive[BLOCK..BLOCK + 5], b"hello");
        let second = &archive[2 * BLOCK..3 * BLOCK];
        assert_eq!(second[..90], [b'f'; 90]);
        assert_eq!(second[345..465], [b'd'; 120]);
    }
}
