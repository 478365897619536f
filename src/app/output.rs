//! Where results go on the disk, and where they must not.

use super::evaluate::Mark;
use crate::journal::{JournalError, NamedText};
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The folder's name for a scenario or rig: the stem of its file.
///
/// # Errors
/// When the name would lead out of the folder that it shall be in.
pub(super) fn folder_name(file: &NamedText) -> Result<String, String> {
    let name = file.name.rsplit('/').next().unwrap_or_default();
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    let mut parts = Path::new(stem).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(one)), None) if one == stem && !stem.contains('\\') => {
            Ok(stem.into())
        }
        _ => Err(format!(
            "the file's name `{}` without its ending is `{}`, which can't name a folder; rename it",
            name.escape_default(),
            stem.escape_default()
        )),
    }
}

/// Makes the first attempt's folder that did not exist: attempts are never overwritten, also not
/// by another import at the same time.
pub(super) fn next_attempt(folder: &Path) -> Result<PathBuf, JournalError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| JournalError::Io { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for n in 1u64.. {
        let attempt = folder.join(n.to_string());
        match fs::create_dir(&attempt) {
            Ok(()) => return Ok(attempt),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&attempt)(error)),
        }
    }
    unreachable!("the numbers don't run out before the disk does")
}

/// Refuses a report that would overwrite evidence: in the folder of a session, or one of the files
/// of the `sessions` or of what was `given` besides, by whatever link it is reached.
pub(super) fn spares_evidence<'a>(
    report: &Path,
    sessions: impl IntoIterator<Item = &'a Path>,
    given: impl IntoIterator<Item = &'a Path>,
) -> Result<(), String> {
    // What is not there yet is where its folder is; what has no folder can't be written anyway.
    let folder = match report.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let target = report.canonicalize().or_else(|_| folder.canonicalize()).unwrap_or_default();
    let home = if target.is_dir() { Some(target.as_path()) } else { target.parent() };
    let marked = |entry: fs::DirEntry| entry.file_name().to_str().and_then(Mark::of).is_some();
    if entries(home.unwrap_or(folder)).any(marked) || entries(folder).any(marked) {
        return Err("it lies in the folder of a session, where it could overwrite evidence; give \
                    another place"
            .into());
    }
    let is_target = |path: &Path| path.canonicalize().is_ok_and(|path| path == target);
    let mut files = sessions.into_iter().flat_map(entries);
    if files.any(|entry| is_target(&entry.path())) || given.into_iter().any(is_target) {
        return Err("it is one of the files to be read; give another place".into());
    }
    Ok(())
}

/// What is in a folder, as far as it can be told.
fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_folder() {
        let of = |name: &str| folder_name(&NamedText::new(name, ""));
        assert_eq!(of("a/volume-step.toml").as_deref(), Ok("volume-step"));
        assert_eq!(of("a.b.toml").as_deref(), Ok("a.b"));
        for name in ["...toml", "a/..toml", ".toml", "", "..", "a/..", "a/", "a\\b.toml"] {
            let why = of(name).expect_err(name);
            assert!(why.contains("can't name a folder"), "{why}");
        }
    }
}
