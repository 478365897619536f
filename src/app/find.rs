//! Which sessions are below a path: all of them, and whatever could not be looked into.

use super::evaluate::{Mark, Refusal};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most folders that are looked through behind a symbolic link.
const MOST_LINKED: usize = 10_000;

/// The sessions in and below the given paths, each folder once, and why the rest was refused.
/// Symbolic links below a path are not followed; one that leads to a session is refused.
pub(super) fn sessions(given: &[PathBuf]) -> Vec<(PathBuf, Result<(), Refusal>)> {
    let mut search = Search::default();
    for path in given {
        let first = search.found.len();
        if !search.walk(path) {
            search.found.push((path.clone(), Err(Refusal::NoRecording(path.clone()))));
        }
        search.found[first..].sort_by(|a, b| a.0.cmp(&b.0));
    }
    search.refuse_links();
    search.found
}

#[derive(Default)]
struct Search {
    found: Vec<(PathBuf, Result<(), Refusal>)>,
    seen: BTreeSet<PathBuf>,
    links: Vec<PathBuf>,
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
            marked |= is_mark(&entry);
            if kind.is_dir() {
                below.push(path);
            } else if kind.is_symlink() && path.is_dir() {
                self.links.push(path);
            }
        }
        if marked {
            self.found.push((here.into(), Ok(())));
        }
        Ok(Some(below))
    }

    /// Once everything else is known: a link to what was found anyway hides nothing.
    fn refuse_links(&mut self) {
        for path in std::mem::take(&mut self.links) {
            let Ok(target) = path.canonicalize() else { continue };
            if self.hides(&target) {
                self.found.push((path.clone(), Err(Refusal::Linked { path, target })));
            }
        }
    }

    /// Whether there is, or may be, a session in or below a folder that was not found.
    fn hides(&self, target: &Path) -> bool {
        let mut open = vec![target.to_path_buf()];
        let mut looked = 0;
        while let Some(here) = open.pop() {
            if self.seen.contains(&here) {
                continue;
            }
            looked += 1;
            let Ok(entries) = fs::read_dir(&here) else { return true };
            for entry in entries {
                let Ok(entry) = entry else { return true };
                if is_mark(&entry) || looked > MOST_LINKED {
                    return true;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(entry.path());
                }
            }
        }
        false
    }
}

fn is_mark(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| Mark::of(name).is_some())
}
