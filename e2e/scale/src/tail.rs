//! Follows the audit log of the API server, across rotations.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// A reader of what is appended.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// The begin of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl Tail {
    /// Begins at the start of the file, which may not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            partial: Vec::new(),
        }
    }

    /// The complete lines that were written since the last call.
    pub(crate) fn lines(&mut self) -> io::Result<String> {
        loop {
            if let Some(file) = &mut self.file {
                file.read_to_end(&mut self.partial)?;
            }
            if !self.reopen()? {
                break;
            }
        }
        let end = self.partial.iter().rposition(|byte| *byte == b'\n');
        let rest = self.partial.split_off(end.map_or(0, |end| end.saturating_add(1)));
        let lines = std::mem::replace(&mut self.partial, rest);
        String::from_utf8(lines).map_err(io::Error::other)
    }

    /// Opens the file if it is another one than before. The server renames a full file and begins a new one, whose first
    /// line comes after the last one of the old file.
    fn reopen(&mut self) -> io::Result<bool> {
        let known = self.file.as_ref().map(File::metadata).transpose()?;
        match fs::metadata(&self.path) {
            Ok(current) if known.is_none_or(|known| known.ino() != current.ino()) => {
                // What came after the last read and before the renaming.
                if let Some(old) = &mut self.file {
                    old.read_to_end(&mut self.partial)?;
                }
                self.file = Some(File::open(&self.path)?);
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("scale-tail-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn lines_are_returned_once_and_when_they_are_complete() {
        let folder = folder("lines");
        let path = folder.join("audit.log");
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.lines().unwrap(), "");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(tail.lines().unwrap(), "one\n");
        file.write_all(b"o\nthree\n").unwrap();
        assert_eq!(tail.lines().unwrap(), "two\nthree\n");
        assert_eq!(tail.lines().unwrap(), "");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn rotation_loses_no_line() {
        let folder = folder("rotation");
        let path = folder.join("audit.log");
        fs::write(&path, "one\n").unwrap();
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.lines().unwrap(), "one\n");
        let mut old = fs::OpenOptions::new().append(true).open(&path).unwrap();
        old.write_all(b"two\n").unwrap();
        fs::rename(&path, folder.join("audit-old.log")).unwrap();
        fs::write(&path, "three\n").unwrap();
        assert_eq!(tail.lines().unwrap(), "two\nthree\n");
        fs::remove_dir_all(folder).unwrap();
    }

    /// The server renames the file between the read and the look for another one.
    #[test]
    fn lines_before_a_rotation_are_read_when_it_is_noticed() {
        let folder = folder("noticed");
        let path = folder.join("audit.log");
        fs::write(&path, "one\n").unwrap();
        let mut tail = Tail::new(path.clone());
        assert_eq!(tail.lines().unwrap(), "one\n");
        let mut old = fs::OpenOptions::new().append(true).open(&path).unwrap();
        fs::rename(&path, folder.join("audit-old.log")).unwrap();
        old.write_all(b"two\n").unwrap();
        fs::write(&path, "three\n").unwrap();
        assert!(tail.reopen().unwrap());
        assert_eq!(tail.lines().unwrap(), "two\nthree\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
