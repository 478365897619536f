//! From a folder to a verdict, without arguments and screens.

use super::Exit;
use crate::journal::{Evidence, JournalError, NamedText, Recording, is_sound_file};
use crate::judge::{self, Ear, Terms, Verdict};
use crate::rig::import::{self, ImportError, Options, Shipped};
use crate::rig::plan::{EarKind, Plan};
use crate::scenario::{self, FileError, Profile, Scenario};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a folder was not judged.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The recording can't be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The foreign session can't be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A text in the recording's head is not valid.
    #[error(
        "in its {part}: {error}; restore the recording's head, or give another scenario with \
         --scenario FILE"
    )]
    Head {
        /// `scenario`, `rig` or `profile`.
        part: &'static str,
        /// What is wrong.
        error: FileError,
    },
    /// An import has no decisions of ours in it.
    #[error("this session was imported: it can be judged, not replayed")]
    NotARun,
    /// There is nothing at the path.
    #[error("{} is no folder; give a recording or a recorded session", .0.display())]
    NoFolder(PathBuf),
    /// There is no session in or below the folder.
    #[error(
        "{} is not a recording and holds none: no head.json and no events.jsonl in it or below",
        .0.display()
    )]
    NoRecording(PathBuf),
    /// A folder that can't be looked into may hold anything.
    #[error("{} can't be looked into ({source}); check its permissions", path.display())]
    Unreadable {
        /// Which folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Two sessions in one folder.
    #[error(
        "{} holds {ours} of a recording and {foreign} of a foreign session, and only one could be \
         judged; give each a folder of its own",
        path.display()
    )]
    TwoSessions {
        /// Which folder.
        path: PathBuf,
        /// A file of the recording.
        ours: String,
        /// A file of the foreign session.
        foreign: String,
    },
    /// A symbolic link to what would otherwise be left out.
    #[error(
        "{} is a symbolic link that leads to a session (or to what can't be looked through), and \
         links below a folder are not followed; give the folder it leads to as well: {}",
        path.display(), target.display()
    )]
    Linked {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
}

impl Refusal {
    /// How the program ends when nothing worse happens: damaged evidence is the bench's trouble,
    /// a wrong question the user's.
    pub fn exit(&self) -> Exit {
        match self {
            Refusal::NoFolder(_) | Refusal::NotARun | Refusal::NoRecording(_) => Exit::Invalid,
            Refusal::Import(ImportError::NoScenario { .. }) => Exit::Invalid,
            Refusal::Import(_) | Refusal::Journal(_) => Exit::CouldNotJudge,
            Refusal::Head { .. } | Refusal::Unreadable { .. } => Exit::CouldNotJudge,
            Refusal::TwoSessions { .. } | Refusal::Linked { .. } => Exit::CouldNotJudge,
        }
    }
}

/// A verdict with what it was judged by.
#[derive(Debug)]
pub struct Judgement {
    /// The scenario.
    pub scenario: Scenario,
    /// Its text.
    pub text: NamedText,
    /// The bench.
    pub rig: Plan,
    /// What was known of bench and board.
    pub terms: Terms,
    /// The verdict.
    pub verdict: Verdict,
}

/// Opens a recording, or imports a foreign session into memory as an electrical tap.
///
/// # Errors
/// When there is neither, or it can't be read.
pub fn open(folder: &Path, scenario: Option<&NamedText>) -> Result<Box<dyn Evidence>, Refusal> {
    if !folder.is_dir() {
        return Err(Refusal::NoFolder(folder.into()));
    }
    let unreadable = |source| Refusal::Unreadable { path: folder.into(), source };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let names = names.collect::<Result<Vec<OsString>, _>>().map_err(unreadable)?;
    let first =
        |mark| names.iter().filter_map(|name| name.to_str()).find(|name| mark == Mark::of(name));
    match (first(Some(Mark::Ours)), first(Some(Mark::Foreign))) {
        (None, Some(_)) => {
            let options = Options { scenario: scenario.cloned(), ..Options::default() };
            Ok(Box::new(import::import(folder, &options, &shipped())?))
        }
        (Some(ours), Some(foreign)) => {
            let (ours, foreign) = (ours.into(), foreign.into());
            Err(Refusal::TwoSessions { path: folder.into(), ours, foreign })
        }
        (_, None) => Ok(Box::new(Recording::open(folder)?)),
    }
}

/// What a file's name says about its folder. A folder with any such file is a session, however
/// little of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Of a recording.
    Ours,
    /// Of a session that another program recorded.
    Foreign,
}

impl Mark {
    /// What this name marks, if anything.
    pub(super) fn of(name: &str) -> Option<Mark> {
        match name {
            "head.json" | "records.jsonl" => Some(Mark::Ours),
            "events.jsonl" | "meta.json" | "speaker.wav" => Some(Mark::Foreign),
            name => is_sound_file(name).then_some(Mark::Ours),
        }
    }
}

/// Judges a session by the scenario in its head, or by another one.
///
/// # Errors
/// When a text in its head is not valid or a record is damaged.
pub fn evaluate(
    evidence: &dyn Evidence,
    scenario: Option<&NamedText>,
) -> Result<Judgement, Refusal> {
    let head = evidence.head();
    let text = scenario.unwrap_or(&head.scenario).clone();
    let in_head = |part| move |error| Refusal::Head { part, error };
    let scenario = Scenario::load(&text).map_err(in_head("scenario"))?;
    let rig = Plan::load(&head.rig).map_err(in_head("rig"))?;
    let profile = Profile::load(&head.profile).map_err(in_head("profile"))?;
    rig.accepts(&profile, &head.rig).map_err(in_head("rig"))?;
    let terms = Terms {
        ear: match rig.ear {
            EarKind::Tap => Ear::Tap,
            EarKind::Microphone => Ear::Microphone,
        },
        law: rig.law,
        path_gain_db: rig.path_gain_db,
        profile,
    };
    let verdict = judge::judge(&scenario, &terms, evidence)?;
    Ok(Judgement { scenario, text, rig, terms, verdict })
}

/// The texts that come with the program.
pub fn shipped() -> Shipped<'static> {
    Shipped { scenario_for: &scenario::for_imported, profile: Profile::xiaozhi() }
}
