//! Results and complaints. Trouble in writing them is remembered and never stops the judging.

use std::io::{self, Write};

/// Standard output and standard error, or what stands for them in a test.
pub struct Streams<'a> {
    results: &'a mut dyn Write,
    errors: &'a mut dyn Write,
    trouble: Option<io::Error>,
}

impl<'a> Streams<'a> {
    /// Results to the one, complaints to the other.
    pub fn new(results: &'a mut dyn Write, errors: &'a mut dyn Write) -> Self {
        Streams { results, errors, trouble: None }
    }

    pub(super) fn result(&mut self, text: &str) {
        if self.trouble.is_none() {
            self.trouble = self.results.write_all(text.as_bytes()).err();
        }
    }

    /// When even this fails there is nobody left to tell; the exit code is.
    pub(super) fn complain(&mut self, text: &str) {
        let _ = self.errors.write_all(text.as_bytes());
    }

    /// Whether every result has arrived.
    pub(super) fn close(&mut self) -> bool {
        let trouble = self.trouble.take().or_else(|| self.results.flush().err());
        match &trouble {
            // The reader went away, which it may.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Some(error) => self.complain(&format!("earwitness: standard output: {error}\n")),
            None => {}
        }
        trouble.is_none()
    }
}
