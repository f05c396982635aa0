//! The archive of a layer: its files and folders. Links, devices and what leaves the root directory are refused.

use std::collections::BTreeMap;

/// Length of a block of the archive.
const BLOCK: usize = 512;
/// Directories of a container that are not the image's.
const OURS: [&str; 13] = [
    "usr", "bin", "sbin", "lib", "lib64", "etc", "proc", "dev", "tmp", "root", "var", "run", "sys",
];

/// The files of an image, by their path without the first `/`.
pub(crate) type Files = BTreeMap<String, File>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
}

/// Adds the files of an archive to those of the layers below.
pub(crate) fn add(archive: &[u8], files: &mut Files) -> Result<(), String> {
    let mut rest = archive;
    let mut long_name = None;
    while let Some((header, after)) = rest.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let size = usize::try_from(number(header, 124, 12)?).map_err(|_| "a file beyond the memory")?;
        let content = after.get(..size).ok_or("the archive ends within a file")?;
        // Some tools leave out what fills the last block, and the empty blocks at the end.
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
        let kind = header.get(156).copied().unwrap_or_default();
        if kind == b'x' {
            long_name = path_of(content);
            continue;
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => name(header)?,
        };
        let path = inside(&name)?;
        match kind {
            b'0' | 0 => {
                let mode = u32::try_from(number(header, 100, 8)?).unwrap_or_default() & 0o777;
                let content = content.to_vec();
                files.insert(path, File { mode, content });
            }
            // Made for the files in it.
            b'5' => {}
            other => return Err(format!("{name}: type `{}` is not supported", char::from(other))),
        }
    }
    match rest {
        [] => Ok(()),
        _ => Err("the archive ends within a block".to_owned()),
    }
}

fn text(header: &[u8], start: usize, length: usize) -> Result<&str, String> {
    let field = header.get(start..start.saturating_add(length)).unwrap_or_default();
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    std::str::from_utf8(text).map_err(|_| "a name that is not text".to_owned())
}

fn number(header: &[u8], start: usize, length: usize) -> Result<u64, String> {
    let digits = text(header, start, length)?.trim();
    u64::from_str_radix(digits, 8).map_err(|_| format!("`{digits}` is no number of an archive"))
}

fn name(header: &[u8]) -> Result<String, String> {
    let (name, prefix) = (text(header, 0, 100)?, text(header, 345, 155)?);
    Ok(match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}/{name}"),
    })
}

/// The name in an extended header, whose records are `LENGTH KEY=VALUE`.
fn path_of(content: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?;
    let records = text.lines().filter_map(|line| line.split_once(' '));
    let mut paths = records.filter_map(|(_, record)| record.strip_prefix("path="));
    paths.next_back().map(str::to_owned)
}

/// A path of the image without the first `/`, in a directory of its own.
fn inside(name: &str) -> Result<String, String> {
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(format!("{name} leaves the root directory"));
    }
    match parts.first() {
        Some(first) if OURS.contains(first) => {
            Err(format!("/{first}: only images without a distribution are supported"))
        }
        _ if parts.iter().any(|part| part.starts_with(".wh.")) => {
            Err(format!("{name} removes a file of another layer"))
        }
        _ => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000755");
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = kind;
        header.extend(content);
        header.resize(header.len().next_multiple_of(BLOCK), 0);
        header
    }

    fn read(entries: &[Vec<u8>]) -> Result<Files, String> {
        let mut archive = entries.concat();
        archive.resize(archive.len() + 2 * BLOCK, 0);
        let mut files = Files::new();
        add(&archive, &mut files).map(|()| files)
    }

    #[test]
    fn files_have_their_content_and_mode() {
        let content = [7; 600];
        let files = read(&[
            entry("./data/", b'5', b""),
            entry("capm3", b'0', &content),
            entry("x", b'x', b"30 mtime=1.5\n19 path=data/long\n"),
            entry("short", b'0', b"z"),
        ])
        .unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["capm3", "data/long"]);
        assert_eq!(
            (files["capm3"].mode, files["capm3"].content.as_slice()),
            (0o755, content.as_slice())
        );
        assert_eq!(files["data/long"].content, b"z");
    }

    #[test]
    fn an_upper_layer_replaces_a_file() {
        let files = read(&[entry("a", b'0', b"1"), entry("/a", b'0', b"2")]).unwrap();
        assert_eq!(files["a"].content, b"2");
    }

    #[test]
    fn what_cannot_be_unpacked_is_refused_by_name() {
        for (archive, why) in [
            (vec![entry("../a", b'0', b"")], "../a leaves"),
            (vec![entry("a", b'2', b"")], "a: type `2`"),
            (vec![entry("usr/bin/a", b'0', b"")], "/usr: only images without"),
            (vec![entry("d/.wh.a", b'0', b"")], "removes a file"),
        ] {
            let refused = read(&archive).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let whole = entry("a", b'0', &[1; 600]);
        assert!(
            add(&whole[..BLOCK + 599], &mut Files::new())
                .unwrap_err()
                .contains("within a file")
        );
        assert_eq!(
            add(&whole[..BLOCK + 600], &mut Files::new()),
            Ok(()),
            "nothing after the file"
        );
        assert!(add(&[1; 7], &mut Files::new()).unwrap_err().contains("within a block"));
        assert!(add(&[1; BLOCK], &mut Files::new()).is_err());
    }
}
