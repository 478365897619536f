//! Architecture: Rust text as the tidy rules need it, without a parser. Relies on rustfmt, which
//! a check of its own enforces: an item ends at the first line that closes at its indentation.

/// A file, cut into lines.
pub struct Source {
    /// Path below the crate, with `/`.
    pub path: String,
    /// The lines as they are.
    pub text: Vec<String>,
    /// The lines with comments and the contents of strings blanked out.
    pub code: Vec<String>,
    /// Whether the line belongs to a test.
    pub in_test: Vec<bool>,
    /// How many inline modules the line is inside of, as far as they are tests.
    depth: Vec<usize>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let text: Vec<String> = text.lines().map(str::to_owned).collect();
        let of_tests = path.ends_with("/tests.rs") || path.contains("/tests/");
        let whole_file = !path.starts_with("src/") || of_tests;
        let (mut in_test, mut depth) = (vec![whole_file; code.len()], vec![0; code.len()]);
        for first in (0..code.len()).filter(|&n| code[n].trim() == "#[cfg(test)]") {
            let item = (first..code.len()).find(|&n| !code[n].trim().starts_with("#["));
            let item = item.unwrap_or(first);
            let last = end_of_item(&code, item).unwrap_or(item);
            in_test[first..=last].fill(true);
            if code[item].trim_start().starts_with("mod ") {
                depth[item..=last].iter_mut().for_each(|depth| *depth += 1);
            }
        }
        Source { path: path.into(), text, code, in_test, depth }
    }

    /// `src/rig/plan.rs` is `rig::plan`, `src/rig/mod.rs` is `rig`.
    pub fn module(&self) -> Vec<&str> {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let mut parts: Vec<_> = path.trim_end_matches(".rs").split('/').collect();
        parts.pop_if(|last| *last == "mod");
        parts
    }

    /// Every path that begins with `crate`, `super`, `earwitness`, `std` or `tokio`, with its line
    /// from 1; grouped imports are spelled out, and the first two are resolved to `crate`.
    pub fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let code = self.code.join("\n");
        let mut found = Vec::new();
        for root in ["crate", "super", "earwitness", "std", "tokio"] {
            for (at, _) in code.match_indices(&format!("{root}::")) {
                let before = code[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let line = code[..at].matches('\n').count();
                let mut branches = Vec::new();
                spell_out(&code[at..], Vec::new(), &mut branches);
                let resolved = branches.into_iter().filter_map(|path| self.resolve(path, line));
                found.extend(resolved.map(|path| (line + 1, path)));
            }
        }
        found
    }

    /// `super::x` seen from here, as `crate::..::x`.
    fn resolve(&self, mut path: Vec<String>, line: usize) -> Option<Vec<String>> {
        let ups = path.iter().take_while(|part| *part == "super").count();
        if ups == 0 {
            if path[0] == "earwitness" {
                path[0] = "crate".into();
            }
            return Some(path);
        }
        let module = self.module();
        let keep = (module.len() + self.depth[line]).checked_sub(ups)?.min(module.len());
        let mut resolved = vec!["crate".to_owned()];
        resolved.extend(module[..keep].iter().map(|part| (*part).to_owned()));
        resolved.extend(path.drain(ups..));
        Some(resolved)
    }

    /// Name, first line from 1 and number of lines of every function with a body.
    pub fn functions(&self) -> Vec<(String, usize, usize)> {
        let mut functions = Vec::new();
        for (n, line) in self.code.iter().enumerate() {
            let Some((before, after)) = line.trim_start().split_once("fn ") else { continue };
            let prefix = before.split_whitespace().all(|word| {
                let word = word.split('(').next().unwrap_or(word);
                ["pub", "const", "async", "extern", "\""].contains(&word)
            });
            if prefix && let Some(last) = end_of_item(&self.code, n) {
                let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                functions.push((name.unwrap_or_default().into(), n + 1, last - n + 1));
            }
        }
        functions
    }
}

/// The last line of the item that begins on line `first`.
fn end_of_item(code: &[String], first: usize) -> Option<usize> {
    let indent = code[first].len() - code[first].trim_start().len();
    let closed = |line: &str| line.ends_with(';') || line.ends_with('}');
    if closed(code[first].trim_end()) {
        return Some(first);
    }
    (first + 1..code.len()).find(|&n| {
        let line = code[n].trim_end();
        let here = line.len() - line.trim_start().len() == indent;
        here && (line.trim() == "}" || line.trim().starts_with([')', '}']) && closed(line))
    })
}

/// Spells out `a::{b, c::d}` as `a::b` and `a::c::d`; returns how much of `code` that took.
fn spell_out(code: &str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 0;
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        let rest = &code[at..];
        if rest.starts_with('{') {
            at += 1;
            loop {
                at += spell_out(&code[at..], path.clone(), found);
                match code[at..].trim_start().chars().next() {
                    Some(',') => at = code.len() - code[at..].trim_start().len() + 1,
                    Some('}') => return code.len() - code[at..].trim_start().len() + 1,
                    _ => return at,
                }
            }
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word == 0 {
            // The end of a list with a comma after its last part, or a glob.
            if rest.starts_with('*') {
                found.push(path);
                return at + 1;
            }
            return at;
        }
        path.push(rest[..word].into());
        at += word;
        if !code[at..].starts_with("::") {
            // `x as y` names nothing new.
            let renamed = code[at..].strip_prefix(" as ").map(|rest| {
                4 + rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            });
            found.push(path);
            return at + renamed.unwrap_or(0);
        }
        at += 2;
    }
}

/// Blanks comments, and the contents of strings and characters, keeping every line break.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let before = out.chars().next_back();
        let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let (length, keep) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (block_comment(rest), false)
        } else if let Some(length) = raw_string(rest).filter(|_| !in_word) {
            (length, false)
        } else if c == '"' {
            (quoted(rest), false)
        } else if let Some(length) = character(rest) {
            (length, false)
        } else {
            (c.len_utf8(), true)
        };
        let (token, after) = rest.split_at(length);
        match keep {
            true => out.push_str(token),
            false => {
                // The quotes stay, so that a string still ends its line.
                let quote = |c: char, at: usize| c == '"' && (at == 0 || at == token.len() - 1);
                let blanked = token.char_indices().map(|(at, c)| match c {
                    '\n' => '\n',
                    c if quote(c, at) => c,
                    _ => ' ',
                });
                out.extend(blanked);
            }
        }
        rest = after;
    }
    out
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let two = text.get(at..at + 2);
        match two {
            Some("/*") => (depth, at) = (depth + 1, at + 2),
            Some("*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Length of `r#"..."#` or `br"..."` at the start of `text`.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(body.find(&close).map_or(text.len(), |end| start + end + close.len()))
}

fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character at the start of `text`; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let first = body.chars().next()?;
    let end = match first {
        '\\' => 1 + body[2..].find('\'')? + 1,
        _ => first.len_utf8(),
    };
    body[end..].starts_with('\'').then_some(end + 2)
}
