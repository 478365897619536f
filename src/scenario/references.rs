//! What claims say of steps: the steps exist, and do what the claim needs. Otherwise the claim
//! could never be proven.

use super::file::{FileError, did_you_mean};
use super::step::{Act, Step};
use super::words::StepRef;
use crate::journal::NamedText;
use std::ops::Range;
use toml::Spanned;

/// The steps of a file; none where another program took them, under names of its own.
pub(super) struct References<'a> {
    pub file: &'a NamedText,
    steps: Vec<&'a Step>,
}

/// What a step must do so that a demand can be met.
#[derive(Clone, Copy)]
pub(super) enum Needed {
    /// Something that is answered. The answer to a `reboot` is not due.
    Answered,
    /// A tool is called.
    Called,
    /// A tool is called with arguments.
    Asked,
    /// The status is asked for.
    Read,
    /// A tone is played.
    Played,
    /// A tool is called that restarts the board.
    Restarted,
}

impl Needed {
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Needed::Answered => &["call", "status"],
            Needed::Called => &["call", "status", "reboot"],
            Needed::Asked => &["call"],
            Needed::Read => &["status"],
            Needed::Played => &["play"],
            Needed::Restarted => &["reboot", "call"],
        }
    }

    fn is_met(self, act: &Act) -> bool {
        let reads = matches!(self, Needed::Read) && act.tool() == Some("self.get_device_status");
        reads || self.kinds().contains(&act.kind())
    }
}

impl<'a> References<'a> {
    pub fn new(file: &'a NamedText, steps: &'a [Step]) -> Self {
        References { file, steps: steps.iter().flat_map(Step::single).collect() }
    }

    /// A reference that stands by itself.
    pub fn check(&self, name: &Spanned<StepRef>, needed: Needed) -> Result<(), FileError> {
        self.check_at(name.span(), name.get_ref(), needed)
    }

    /// A reference inside of a value.
    pub fn check_in(
        &self,
        value: Range<usize>,
        name: &StepRef,
        needed: Needed,
    ) -> Result<(), FileError> {
        let text = self.file.text.get(value.clone()).unwrap_or_default();
        let at = text.find(&format!("\"{}\"", name.0)).unwrap_or(0);
        self.check_at(value.start + at..value.end, name, needed)
    }

    fn check_at(
        &self,
        place: Range<usize>,
        StepRef(name): &StepRef,
        needed: Needed,
    ) -> Result<(), FileError> {
        if self.steps.is_empty() {
            return Ok(());
        }
        let is_meant = |step: &&&Step| match name.strip_suffix('*') {
            Some(beginning) => step.id.starts_with(beginning),
            None => step.id == *name,
        };
        let meant: Vec<&&Step> = self.steps.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let meant = did_you_mean(name, self.steps.iter().map(|step| step.id.as_str()));
            let what = format!("there is no step `{name}`{meant}");
            return Err(FileError::at(self.file, place, what));
        }
        match meant.into_iter().find(|step| !needed.is_met(&step.act)) {
            None => Ok(()),
            Some(Step { id, act, .. }) => {
                let (kind, needed) = (act.kind(), needed.kinds().join("` or a `"));
                let what = format!("the step `{id}` is a `{kind}`; needed is a `{needed}`");
                Err(FileError::at(self.file, place, what))
            }
        }
    }
}
