//! Files as the rules see them: the text, and for Rust the code alone.

use std::path::Path;

/// Folders whose files are ours to keep tidy. Recorded answers of an ERP are not.
const FOLDERS: [&str; 7] = ["src", "tests", "connectors", "policies", "docs", "examples", "docker"];
/// Files beside them.
const FILES: [&str; 4] = ["README.md", "Cargo.toml", "deny.toml", ".ci/run"];
/// What is read in the folders.
const KINDS: [&str; 7] = ["rs", "md", "toml", "cedar", "cedarschema", "sql", "py"];

/// One file.
#[derive(Debug)]
pub(super) struct Source {
    /// From the root of the tree, with `/`.
    pub(super) path: String,
    /// As it stands.
    pub(super) text: String,
    /// Rust and Cedar without comments and the content of texts; of the same length in lines.
    pub(super) code: String,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = if is_code(path) { code_of(text) } else { String::new() };
        Self { path: path.to_owned(), text: text.to_owned(), code }
    }

    pub(super) fn is_rust(&self) -> bool {
        has_kind(&self.path, "rs")
    }

    pub(super) fn is_cedar(&self) -> bool {
        has_kind(&self.path, "cedar")
    }

    pub(super) fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// Whether the whole file is built for tests only.
    pub(super) fn is_test(&self) -> bool {
        let folders: Vec<&str> = self.path.split('/').collect();
        folders.contains(&"tests") || self.path.ends_with("/tests.rs")
    }

    /// The code up to the tests at its end. By the style of this tree they come last.
    pub(super) fn code_but_tests(&self) -> &str {
        self.code.split_once(TESTS).map_or(self.code.as_str(), |(code, _)| code)
    }

    /// The tests at the end of a file, with the number of their first line; all of a test file.
    pub(super) fn tests(&self) -> (usize, &str) {
        if self.is_test() {
            return (1, &self.code);
        }
        match self.code.split_once(TESTS) {
            Some((code, tests)) => (code.matches('\n').count() + 2, tests),
            None => (1, ""),
        }
    }
}

/// How tests at the end of a file begin.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

fn has_kind(path: &str, kind: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == kind)
}

fn is_code(path: &str) -> bool {
    has_kind(path, "rs") || has_kind(path, "cedar")
}

/// Reads the tree.
pub(super) fn read_tree(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        if root.join(folder).is_dir() {
            read_folder(root, folder, &mut found);
        }
    }
    for file in FILES {
        if let Ok(text) = std::fs::read_to_string(root.join(file)) {
            found.push(Source::new(file, &text));
        }
    }
    found
}

fn read_folder(root: &Path, folder: &str, found: &mut Vec<Source>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            read_folder(root, &path, found);
        } else if KINDS.iter().any(|kind| has_kind(&path, kind)) {
            found.push(Source::new(&path, &std::fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

/// The code without comments and without what stands in texts and characters.
fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let end = match (c, chars.get(at + 1)) {
            ('/', Some('/')) => line_comment(&chars, at),
            ('/', Some('*')) => block_comment(&chars, at),
            ('"', _) => text_end(&chars, at),
            ('r', Some('"' | '#')) if !continues_a_name(&chars, at) => raw_text_end(&chars, at),
            ('\'', _) => character_end(&chars, at),
            _ => at,
        };
        if end == at {
            code.push(c);
            at += 1;
        } else {
            // Lines stay lines, so that a finding can name its own.
            code.extend(chars[at..end].iter().filter(|c| **c == '\n'));
            code.push(' ');
            at = end;
        }
    }
    code
}

fn continues_a_name(chars: &[char], at: usize) -> bool {
    // `br"…"` is a text as well, `for"…"` is none.
    let before = at.checked_sub(1).and_then(|before| chars.get(before));
    before.is_some_and(|c| (c.is_alphanumeric() && *c != 'b') || *c == '_')
}

fn line_comment(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| at + length)
}

fn block_comment(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(chars.len())
}

fn text_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_text_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    let quote = start + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        // A raw name, `r#type`.
        return start;
    }
    let mut at = quote + 1;
    while at < chars.len() {
        let closes = chars[at] == '"'
            && chars.len() > at + hashes
            && chars[at + 1..=at + hashes].iter().all(|c| *c == '#');
        at += 1;
        if closes {
            return at + hashes;
        }
    }
    chars.len()
}

/// A lifetime is code, a character is not.
fn character_end(chars: &[char], start: usize) -> usize {
    match (chars.get(start + 1), chars.get(start + 2)) {
        (Some('\\'), _) => chars[start + 3..]
            .iter()
            .position(|c| *c == '\'')
            .map_or(chars.len(), |length| start + 3 + length + 1),
        (Some(_), Some('\'')) => start + 3,
        _ => start,
    }
}

/// The names in a code, each with its line.
pub(super) fn names(code: &str, first_line: usize) -> Vec<(usize, &str)> {
    let lines = code.split('\n').enumerate();
    lines
        .flat_map(|(at, line)| {
            line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .filter(|name| name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_'))
                .map(move |name| (first_line + at, name))
        })
        .collect()
}

#[test]
fn comments_and_texts_are_no_code() {
    for (text, code) in [
        ("a // sqlx\nb", "a  \nb"),
        ("a /* x /* y */ z\n */ b", "a \n  b"),
        (r#"a("sql\"x", 1)"#, "a( , 1)"),
        (r##"a(r#"x"y"#, b"z")"##, "a( , b )"),
        ("f::<'a>('x', '\\'', '\"')", "f::<'a>( ,  ,  )"),
        ("let r#type = 1;", "let r#type = 1;"),
    ] {
        assert_eq!(code_of(text), code, "`{text}`");
    }
}

#[test]
fn names_have_their_lines() {
    let found = names("use a::b_1;\n\nfn c(7)", 10);
    assert_eq!(found, [(10, "use"), (10, "a"), (10, "b_1"), (12, "fn"), (12, "c")]);
}
