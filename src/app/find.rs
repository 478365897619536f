//! Which sessions are below a path: all of them, and whatever could not be looked into.

use super::evaluate::Refusal;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files of a recording (`mic-NNN.wav` too) or of a foreign session. A folder with any of them
/// is one, however little of it is left.
const MARKS: [&str; 5] = ["head.json", "records.jsonl", "events.jsonl", "meta.json", "speaker.wav"];

/// The sessions in and below the given paths, each folder once, and why the rest was refused.
/// Symbolic links below a path are not followed.
pub(super) fn sessions(given: &[PathBuf]) -> Vec<(PathBuf, Result<(), Refusal>)> {
    let mut search = Search::default();
    for path in given {
        let first = search.found.len();
        if !search.walk(path) {
            search.found.push((path.clone(), Err(Refusal::NoRecording(path.clone()))));
        }
        search.found[first..].sort_by(|a, b| a.0.cmp(&b.0));
    }
    search.found
}

#[derive(Default)]
struct Search {
    found: Vec<(PathBuf, Result<(), Refusal>)>,
    seen: BTreeSet<PathBuf>,
}

impl Search {
    /// Whether there was anything, be it known already or unreadable.
    fn walk(&mut self, path: &Path) -> bool {
        let before = self.found.len();
        let (mut open, mut known) = (vec![path.to_path_buf()], false);
        while let Some(here) = open.pop() {
            match self.look_into(&here) {
                Ok(Some(below)) => open.extend(below),
                Ok(None) => known = true,
                Err(refusal) => self.found.push((here, Err(refusal))),
            }
        }
        known || self.found.len() > before
    }

    /// The folders in a folder; `None` when it was seen before.
    fn look_into(&mut self, here: &Path) -> Result<Option<Vec<PathBuf>>, Refusal> {
        let unreadable = |source| Refusal::Unreadable { path: here.into(), source };
        match fs::metadata(here) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(error)),
            Ok(what) if what.is_dir() => {}
            _ => return Err(Refusal::NoFolder(here.into())),
        }
        if !self.seen.insert(here.canonicalize().map_err(unreadable)?) {
            return Ok(None);
        }
        let (mut below, mut marked) = (Vec::new(), false);
        for entry in fs::read_dir(here).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let path = here.join(entry.file_name());
            marked |= entry.file_name().to_str().is_some_and(is_mark);
            if kind.is_dir() {
                below.push(path);
            } else if kind.is_symlink() && path.is_dir() {
                tracing::warn!("{}: a symbolic link below a folder, not followed", path.display());
            }
        }
        if marked {
            self.found.push((here.into(), Ok(())));
        }
        Ok(Some(below))
    }
}

fn is_mark(name: &str) -> bool {
    MARKS.contains(&name) || (name.starts_with("mic-") && name.ends_with(".wav"))
}
