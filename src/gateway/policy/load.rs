//! From files to [`Policies`]: everything that can be found wrong with a policy text is found here,
//! at start, and named by file and policy. It decides nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use cedar_policy::{
    Policy, PolicyId, PolicySet, Schema, ValidationMode, ValidationResult, Validator,
    schema_str_to_json_with_resolved_types,
};
use miette::Diagnostic;

use super::vocabulary::ActionWords;
use super::{NO_PERMIT, Policies};

/// What a file of policies ends in.
const POLICIES: &str = "cedar";
/// What the file with the schema ends in.
const SCHEMA: &str = "cedarschema";

/// Why a directory holds no policies that this daemon could decide by.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The directory or a file in it cannot be read or written.
    #[error("cannot {verb} `{}`", path.display())]
    File {
        /// `read` or `write`.
        verb: &'static str,
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Not exactly one schema.
    #[error("the policies need one `*.cedarschema` file, and there are {count} in `{origin}`")]
    Schemas {
        /// How many there are.
        count: usize,
        /// Where.
        origin: String,
    },
    /// Nothing that could permit anything.
    #[error("there is no policy in `{origin}`")]
    NoPolicies {
        /// Where.
        origin: String,
    },
    /// A file that is not text.
    #[error("`{file}` is not UTF-8 text")]
    NotText {
        /// Which.
        file: String,
    },
    /// A file that Cedar cannot read.
    #[error("`{file}`, line {line}: {problem}")]
    Syntax {
        /// Which.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What Cedar says.
        problem: String,
    },
    /// A schema that Cedar warns about, or that asks what the daemon does not have.
    #[error("`{file}`: {problem}")]
    Schema {
        /// Which.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A template: nothing here would ever fill its slots, so it would never apply.
    #[error("`{file}` holds a template; name principal and resource, or leave them open")]
    Template {
        /// Which.
        file: String,
    },
    /// A policy that could not be named in an answer.
    #[error("policy number {number} in `{file}` has no @id")]
    NoId {
        /// Which file.
        file: String,
        /// Which policy in it, counted from 1.
        number: usize,
    },
    /// An id that is not in kebab-case, or that means something else.
    #[error("policy `{id}` in `{file}`: {problem}")]
    BadId {
        /// Which file.
        file: String,
        /// Which policy.
        id: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A policy that nobody could explain.
    #[error("policy `{id}` in `{file}` has no @reason")]
    NoReason {
        /// Which file.
        file: String,
        /// Which policy.
        id: String,
    },
    /// Two policies of one name.
    #[error("policy `{id}` in `{file}` has the same @id as one in `{other}`")]
    DuplicateId {
        /// The file of the second.
        file: String,
        /// The id of both.
        id: String,
        /// The file of the first.
        other: String,
    },
    /// Policies that do not fit the schema, warnings included: a rule that can never apply is a
    /// rule that somebody counts on.
    #[error("the policies do not fit the schema: {}", problems.join("; "))]
    Invalid {
        /// Each with its policy and file.
        problems: Vec<String>,
    },
    /// The schema's groups of actions cannot be used.
    #[error("the schema's actions cannot be used: {problem}")]
    Actions {
        /// What Cedar says.
        problem: String,
    },
}

/// A file's name and bytes.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Policies {
    /// Loads all `*.cedar` files and the one `*.cedarschema` file of a directory. Other files, and
    /// directories such as `cases`, are left alone.
    pub fn load(dir: &Path) -> Result<Self, PolicyError> {
        let mut files = Vec::new();
        for path in policy_files(dir)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).map_err(|source| cannot("read", &path, source))?;
            files.push(SourceFile { name, bytes });
        }
        Self::from_files(&dir.display().to_string(), files)
    }

    /// Makes policies of these files, which came from `origin`.
    pub(super) fn from_files(
        origin: &str,
        mut files: Vec<SourceFile>,
    ) -> Result<Self, PolicyError> {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let digest = digest_of(&files);
        let (schemas, texts): (Vec<_>, Vec<_>) =
            files.iter().partition(|file| has_extension(Path::new(&file.name), SCHEMA));
        let [schema] = schemas.as_slice() else {
            return Err(PolicyError::Schemas { count: schemas.len(), origin: origin.to_owned() });
        };
        let (schema, actions) = read_schema(schema)?;
        let mut named = Named::default();
        for file in texts {
            named.read(file)?;
        }
        if named.set.is_empty() {
            return Err(PolicyError::NoPolicies { origin: origin.to_owned() });
        }
        let validator = Validator::new(schema.clone());
        named.check(&validator.validate(&named.set, ValidationMode::Strict))?;
        let entities = schema
            .action_entities()
            .map_err(|error| PolicyError::Actions { problem: error.to_string() })?;
        Ok(Self { schema, set: named.set, entities, actions, reasons: named.reasons, digest })
    }
}

/// Policies under their own ids.
#[derive(Default)]
struct Named<'a> {
    set: PolicySet,
    /// Policy id to `@reason`.
    reasons: BTreeMap<String, String>,
    /// Policy id to file.
    files: BTreeMap<String, &'a SourceFile>,
}

impl<'a> Named<'a> {
    fn read(&mut self, file: &'a SourceFile) -> Result<(), PolicyError> {
        let text = text_of(file)?;
        let parsed: PolicySet =
            text.parse().map_err(|errors: cedar_policy::ParseErrors| PolicyError::Syntax {
                file: file.name.clone(),
                line: line_of(&errors, &file.bytes),
                problem: errors.to_string(),
            })?;
        if parsed.num_of_templates() > 0 {
            return Err(PolicyError::Template { file: file.name.clone() });
        }
        let mut policies: Vec<(usize, &Policy)> =
            parsed.policies().map(|policy| (number_of(policy), policy)).collect();
        policies.sort_by_key(|(number, _)| *number);
        for (number, policy) in policies {
            self.add(file, number, policy)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        source: &'a SourceFile,
        number: usize,
        policy: &Policy,
    ) -> Result<(), PolicyError> {
        let file = source.name.clone();
        let Some(id) = annotation(policy, "id") else {
            return Err(PolicyError::NoId { file, number });
        };
        if !is_kebab_case(&id) {
            let problem = "an @id has lower-case letters, digits and single hyphens between them";
            return Err(PolicyError::BadId { file, id, problem });
        }
        if id == NO_PERMIT {
            let problem = "this @id means that no policy permits";
            return Err(PolicyError::BadId { file, id, problem });
        }
        if let Some(other) = self.files.get(&id) {
            return Err(PolicyError::DuplicateId { file, id, other: other.name.clone() });
        }
        let Some(reason) = annotation(policy, "reason") else {
            return Err(PolicyError::NoReason { file, id });
        };
        self.set.add(policy.new_id(PolicyId::new(&id))).map_err(|error| PolicyError::Invalid {
            problems: vec![format!("policy `{id}` in `{file}`: {error}")],
        })?;
        self.reasons.insert(id.clone(), reason);
        self.files.insert(id, source);
        Ok(())
    }

    fn check(&self, result: &ValidationResult) -> Result<(), PolicyError> {
        if result.validation_passed_without_warnings() {
            return Ok(());
        }
        let errors = result.validation_errors().map(|e| self.problem(e.policy_id(), e));
        let warnings = result.validation_warnings().map(|w| self.problem(w.policy_id(), w));
        Err(PolicyError::Invalid { problems: errors.chain(warnings).collect() })
    }

    /// What Cedar says about a policy, with its place.
    fn problem(&self, id: &PolicyId, error: &dyn Diagnostic) -> String {
        let (id, said) = (id.to_string(), error.to_string());
        // Cedar begins with the id, which stands before it already.
        let said = said.strip_prefix(&format!("for policy `{id}`, ")).unwrap_or(&said);
        let Some(file) = self.files.get(&id) else { return format!("policy `{id}`: {said}") };
        let line = line_of(error, &file.bytes);
        format!("policy `{id}` in `{}`, line {line}: {said}", file.name)
    }
}

/// The files of a directory that belong to its policies, in no order.
pub(super) fn policy_files(dir: &Path) -> Result<Vec<PathBuf>, PolicyError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|source| cannot("read", dir, source))? {
        let path = entry.map_err(|source| cannot("read", dir, source))?.path();
        if has_extension(&path, POLICIES) || has_extension(&path, SCHEMA) {
            files.push(path);
        }
    }
    Ok(files)
}

pub(super) fn cannot(verb: &'static str, path: &Path, source: io::Error) -> PolicyError {
    PolicyError::File { verb, path: path.to_owned(), source }
}

fn read_schema(file: &SourceFile) -> Result<(Schema, BTreeMap<String, ActionWords>), PolicyError> {
    let text = text_of(file)?;
    let refused = |errors: cedar_policy::CedarSchemaError| PolicyError::Syntax {
        file: file.name.clone(),
        line: line_of(&errors, &file.bytes),
        problem: errors.to_string(),
    };
    let (schema, warnings) = Schema::from_cedarschema_str(text).map_err(refused)?;
    let wrong = |problem: String| PolicyError::Schema { file: file.name.clone(), problem };
    if let Some(warning) = warnings.into_iter().next() {
        return Err(wrong(warning.to_string()));
    }
    let (json, _) = schema_str_to_json_with_resolved_types(text).map_err(refused)?;
    let actions = ActionWords::of_schema(json).map_err(wrong)?;
    Ok((schema, actions))
}

fn text_of(file: &SourceFile) -> Result<&str, PolicyError> {
    std::str::from_utf8(&file.bytes)
        .ok()
        .ok_or_else(|| PolicyError::NotText { file: file.name.clone() })
}

/// The line that an error points at; the first where it points nowhere.
fn line_of(error: &dyn Diagnostic, text: &[u8]) -> usize {
    let offset = error.labels().and_then(|mut labels| labels.next()).map_or(0, |l| l.offset());
    let before = text.iter().take(offset).filter(|byte| **byte == b'\n').count();
    before.saturating_add(1)
}

/// A policy's place in its file, counted from 1: Cedar names them `policy0`, `policy1` and so on.
fn number_of(policy: &Policy) -> usize {
    let id = policy.id().to_string();
    let index = id.strip_prefix("policy").and_then(|digits| digits.parse::<usize>().ok());
    index.map_or(0, |index| index.saturating_add(1))
}

/// The text of an annotation, where it says something.
fn annotation(policy: &Policy, key: &str) -> Option<String> {
    let text = policy.annotation(key)?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_kebab_case(id: &str) -> bool {
    id.split('-').all(|part| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    })
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|is| is == extension)
}

/// The digest over sorted files. Each length stands before what it measures, so that no text can
/// move from one file into another and leave the digest as it was.
fn digest_of(sorted: &[SourceFile]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for file in sorted {
        for part in [file.name.as_bytes(), &file.bytes] {
            context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(part);
        }
    }
    context.finish().as_ref().iter().fold("sha256:".to_owned(), |text, byte| text + &hex_of(*byte))
}

fn hex_of(byte: u8) -> String {
    format!("{byte:02x}")
}

#[cfg(test)]
mod tests;
