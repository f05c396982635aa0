//! Reads files of an ISO 9660 image: Ironic's boot ISOs and config-drives.
//!
//! Total: any bytes result in files or an error, without panic or endless loop. Names are those of the primary volume,
//! without version and trailing dot; Joliet and Rock Ridge names are ignored, so compare names without case.

const SECTOR: usize = 2048;
const DEEPEST: usize = 8;
const MOST_ENTRIES: usize = 4096;

/// The error for an unreadable image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IsoError {
    /// The volume descriptor is missing.
    #[error("not an ISO 9660 image")]
    NotIso,
    /// A directory points outside the image or into itself.
    #[error("the ISO 9660 image is damaged")]
    Damaged,
}

/// A file of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<'a> {
    /// Path without a leading slash.
    pub path: String,
    /// Its bytes.
    pub content: &'a [u8],
}

/// All files, in the order of the directories.
///
/// # Errors
/// [`IsoError`] when the image is not an ISO or is damaged.
pub fn files(image: &[u8]) -> Result<Vec<File<'_>>, IsoError> {
    let descriptor = image.get(16 * SECTOR..17 * SECTOR).ok_or(IsoError::NotIso)?;
    if descriptor.get(..6) != Some(b"\x01CD001") {
        return Err(IsoError::NotIso);
    }
    let root = descriptor
        .get(156..190)
        .and_then(Record::parse)
        .ok_or(IsoError::Damaged)?;
    let (mut found, mut todo, mut seen) = (Vec::new(), vec![(String::new(), root, 0)], 0);
    while let Some((path, directory, depth)) = todo.pop() {
        for record in directory.entries(image)? {
            seen += 1;
            if depth > DEEPEST || seen > MOST_ENTRIES {
                return Err(IsoError::Damaged);
            }
            let path = if path.is_empty() {
                record.name.clone()
            } else {
                format!("{path}/{}", record.name)
            };
            if record.is_directory {
                todo.push((path, record, depth + 1));
            } else {
                found.push(File {
                    path,
                    content: record.content(image)?,
                });
            }
        }
    }
    Ok(found)
}

/// The file at `path`, compared without case.
///
/// # Errors
/// [`IsoError`] when the image is not an ISO or is damaged.
pub fn file<'a>(image: &'a [u8], path: &str) -> Result<Option<&'a [u8]>, IsoError> {
    Ok(files(image)?
        .into_iter()
        .find(|file| file.path.eq_ignore_ascii_case(path))
        .map(|file| file.content))
}

struct Record {
    start: usize,
    length: usize,
    is_directory: bool,
    name: String,
}

impl Record {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let name_length = usize::from(*bytes.get(32)?);
        let name = String::from_utf8_lossy(bytes.get(33..33 + name_length)?);
        Some(Self {
            start: number(2)?.checked_mul(SECTOR)?,
            length: number(10)?,
            is_directory: bytes.get(25)? & 2 != 0,
            name: name
                .split(';')
                .next()
                .unwrap_or_default()
                .trim_end_matches('.')
                .to_owned(),
        })
    }

    fn content<'a>(&self, image: &'a [u8]) -> Result<&'a [u8], IsoError> {
        let end = self.start.checked_add(self.length).ok_or(IsoError::Damaged)?;
        image.get(self.start..end).ok_or(IsoError::Damaged)
    }

    /// The entries of a directory, without itself and its parent.
    fn entries(&self, image: &[u8]) -> Result<Vec<Self>, IsoError> {
        let mut entries = Vec::new();
        // A record never crosses a sector; zeros fill the rest of one.
        for sector in self.content(image)?.chunks(SECTOR) {
            let mut rest = sector;
            while let Some(length) = rest
                .first()
                .map(|length| usize::from(*length))
                .filter(|length| *length > 0)
            {
                let record = rest.get(..length).ok_or(IsoError::Damaged)?;
                let is_self_or_parent = matches!(record.get(32..34), Some([1, 0 | 1]));
                if !is_self_or_parent {
                    entries.push(Self::parse(record).ok_or(IsoError::Damaged)?);
                }
                rest = rest.get(length..).unwrap_or_default();
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &[u8], sector: u32, length: u32, is_directory: bool) -> Vec<u8> {
        let mut bytes = vec![0; 33];
        bytes[2..6].copy_from_slice(&sector.to_le_bytes());
        bytes[10..14].copy_from_slice(&length.to_le_bytes());
        bytes[25] = u8::from(is_directory) * 2;
        bytes[32] = u8::try_from(name.len()).unwrap();
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        bytes[0] = u8::try_from(bytes.len()).unwrap();
        bytes
    }

    /// A root directory in sector 17, a directory in 18, a file in 19.
    fn image() -> Vec<u8> {
        let mut image = vec![0; 20 * SECTOR];
        let mut put = |sector: usize, at: usize, bytes: &[u8]| {
            image[sector * SECTOR + at..][..bytes.len()].copy_from_slice(bytes);
        };
        let sector = u32::try_from(SECTOR).unwrap();
        put(16, 0, b"\x01CD001\x01");
        put(16, 156, &record(b"\0", 17, sector, true));
        put(
            17,
            0,
            &[record(b"\0", 17, sector, true), record(b"BOOT", 18, sector, true)].concat(),
        );
        put(
            18,
            0,
            &[record(b"\x01", 17, sector, true), record(b"GRUB.CFG;1", 19, 5, false)].concat(),
        );
        put(19, 0, b"hello");
        image
    }

    #[test]
    fn file_is_found_by_path_without_version_and_case() {
        assert_eq!(file(&image(), "boot/grub.cfg"), Ok(Some(b"hello".as_slice())));
        assert_eq!(file(&image(), "boot/other"), Ok(None));
    }

    #[test]
    fn directory_loop_is_damage_and_ends() {
        let mut image = image();
        let looped = record(b"LOOP", 17, u32::try_from(SECTOR).unwrap(), true);
        image[17 * SECTOR..][..looped.len()].copy_from_slice(&looped);
        assert_eq!(files(&image), Err(IsoError::Damaged));
    }

    #[test]
    fn truncated_image_does_not_panic() {
        let image = image();
        for length in (0..image.len()).step_by(97) {
            let _ = files(&image[..length]);
        }
        assert_eq!(files(&image[..16 * SECTOR]), Err(IsoError::NotIso));
    }
}
