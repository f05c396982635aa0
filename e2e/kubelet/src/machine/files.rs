//! Volumes on disk. An update is atomic: the files are in a directory behind one symbolic link, which is replaced by a
//! rename.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use crate::plan::volume::{Content, File};

const DATA: &str = "..data";
const NEXT: &str = "..next";

/// Writes the content of a volume. Returns whether it changed.
pub(crate) fn write(folder: &Path, content: &Content, group: Option<u32>) -> io::Result<bool> {
    match content {
        Content::Scratch if folder.is_dir() => Ok(false),
        Content::Scratch => {
            fs::create_dir_all(folder)?;
            chown(folder, None, group)?;
            let mode = if group.is_some() { 0o2777 } else { 0o777 };
            fs::set_permissions(folder, PermissionsExt::from_mode(mode))?;
            Ok(true)
        }
        Content::Files(files) => write_files(folder, files, group),
    }
}

fn write_files(folder: &Path, files: &BTreeMap<String, File>, group: Option<u32>) -> io::Result<bool> {
    let current = fs::read_link(folder.join(DATA)).ok();
    let holds = current
        .as_ref()
        .is_some_and(|current| same(&folder.join(current), files));
    if holds {
        return Ok(false);
    }
    let number: u64 = current
        .as_ref()
        .and_then(|name| name.to_str()?.strip_prefix("..")?.parse().ok())
        .unwrap_or(0);
    let name = format!("..{}", number.saturating_add(1));
    let fresh = folder.join(&name);
    fs::create_dir_all(&fresh)?;
    fs::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
    fs::set_permissions(&fresh, PermissionsExt::from_mode(0o755))?;
    for (path, file) in files {
        let path = fresh.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.bytes)?;
        chown(&path, None, group)?;
        // The Pod's group may read the files regardless of the mode.
        let mode = if group.is_some() { file.mode | 0o040 } else { file.mode };
        fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
    }
    remove(&folder.join(NEXT))?;
    symlink(&name, folder.join(NEXT))?;
    fs::rename(folder.join(NEXT), folder.join(DATA))?;
    link_names(folder, files)?;
    if let Some(current) = current {
        fs::remove_dir_all(folder.join(current))?;
    }
    Ok(true)
}

/// Links the top-level names through `..data`, and removes links of removed files.
fn link_names(folder: &Path, files: &BTreeMap<String, File>) -> io::Result<()> {
    let tops: Vec<&str> = files.keys().filter_map(|path| path.split('/').next()).collect();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !tops.contains(&name.as_ref()) {
            remove(&folder.join(name.as_ref()))?;
        }
    }
    for top in tops {
        match symlink(Path::new(DATA).join(top), folder.join(top)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn same(folder: &Path, files: &BTreeMap<String, File>) -> bool {
    let equal = |(path, file): (&String, &File)| fs::read(folder.join(path)).is_ok_and(|bytes| bytes == file.bytes);
    files.iter().all(equal) && count(folder).is_ok_and(|count| count == files.len())
}

fn count(folder: &Path) -> io::Result<usize> {
    fs::read_dir(folder)?.try_fold(0, |sum, entry| {
        let entry = entry?;
        Ok(sum
            + if entry.file_type()?.is_dir() {
                count(&entry.path())?
            } else {
                1
            })
    })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed after the test.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("process-kubelet-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn content(files: &[(&str, &str)]) -> Content {
        let file = |text: &str| File {
            bytes: text.as_bytes().to_vec(),
            mode: 0o640,
        };
        Content::Files(
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), file(text)))
                .collect(),
        )
    }

    #[test]
    fn new_content_replaces_the_old_atomically() {
        let folder = Folder::new("replace");
        let volume = folder.0.join("v");
        assert!(write(&volume, &content(&[("a", "1"), ("deep/b", "2")]), None).unwrap());
        assert_eq!(fs::read_to_string(volume.join("deep/b")).unwrap(), "2");
        assert_eq!(
            fs::metadata(volume.join("a")).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(
            !write(&volume, &content(&[("a", "1"), ("deep/b", "2")]), None).unwrap(),
            "nothing changed"
        );
        assert!(write(&volume, &content(&[("a", "3")]), None).unwrap());
        assert_eq!(fs::read_to_string(volume.join("a")).unwrap(), "3");
        assert!(!volume.join("deep").exists(), "a removed key has no file");
        let folders = fs::read_dir(&volume)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_dir());
        assert_eq!(folders.count(), 1, "one content at a time");
    }

    #[test]
    fn scratch_directories_keep_the_files_of_the_container() {
        let folder = Folder::new("scratch");
        let volume = folder.0.join("v");
        assert!(write(&volume, &Content::Scratch, None).unwrap());
        fs::write(volume.join("own"), "x").unwrap();
        assert!(!write(&volume, &Content::Scratch, None).unwrap());
        assert!(volume.join("own").exists(), "what the container wrote stays");
    }
}
