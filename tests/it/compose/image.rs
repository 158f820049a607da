//! The Dockerfile, as far as this tree uses its language.

/// One stage.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) from: String,
    /// Instructions with their arguments, in order.
    pub(super) lines: Vec<(String, String)>,
}

/// Instructions that may stand in it. `ADD` fetches and unpacks, `ARG` and `ENV` keep secrets.
const KNOWN: [&str; 8] =
    ["CMD", "COPY", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "RUN", "USER", "WORKDIR"];

/// Reads the stages of a Dockerfile.
#[track_caller]
pub(super) fn stages(text: &str) -> Vec<Stage> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let mut stages: Vec<Stage> = Vec::new();
    for line in code.join("\n").replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty())
    {
        let (word, arguments) = line.split_once(' ').unwrap();
        let arguments = arguments.split_whitespace().collect::<Vec<_>>().join(" ");
        if word == "FROM" {
            let (from, name) = arguments.split_once(" AS ").expect("every stage has a name");
            stages.push(Stage { name: name.to_owned(), from: from.to_owned(), lines: Vec::new() });
        } else {
            assert!(KNOWN.contains(&word), "`{word}` is not known here");
            let stage = stages.last_mut().expect("nothing stands before the first stage");
            stage.lines.push((word.to_owned(), arguments));
        }
    }
    stages
}

/// The stages that an image is made of, the last one first.
#[track_caller]
pub(super) fn lineage<'a>(stages: &'a [Stage], target: &str) -> Vec<&'a Stage> {
    let mut found = Vec::new();
    let mut name = target.to_owned();
    while let Some(stage) = stages.iter().find(|stage| stage.name == name) {
        found.push(stage);
        name.clone_from(&stage.from);
    }
    assert!(!found.is_empty(), "there is no stage `{target}`");
    found
}

/// What an image has of an instruction that the last one wins.
pub(super) fn newest(lineage: &[&Stage], word: &str) -> Option<String> {
    let mut lines = lineage.iter().flat_map(|stage| stage.lines.iter().rev());
    lines.find(|(found, _)| found == word).map(|(_, arguments)| arguments.clone())
}

/// The words of an instruction in its JSON form.
#[track_caller]
pub(super) fn words(arguments: &str) -> Vec<String> {
    let start = arguments.find('[').expect("the JSON form, which no shell reads");
    serde_json::from_str(arguments.get(start..).unwrap()).unwrap()
}

/// A `COPY`.
#[derive(Debug)]
pub(super) struct Copied {
    /// The stage that it is from; else the build's context.
    pub(super) from: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) source: String,
    pub(super) target: String,
}

/// All that is copied into an image.
#[track_caller]
pub(super) fn copied(lineage: &[&Stage]) -> Vec<Copied> {
    let lines = lineage.iter().flat_map(|stage| &stage.lines);
    let copies = lines.filter(|(word, _)| word == "COPY").map(|(_, arguments)| {
        let (options, paths): (Vec<&str>, Vec<&str>) =
            arguments.split(' ').partition(|word| word.starts_with("--"));
        let option = |name: &str| {
            options.iter().find_map(|option| option.strip_prefix(name)).map(ToOwned::to_owned)
        };
        let [source, target] = paths[..] else { panic!("`{arguments}`") };
        let (from, owner) = (option("--from="), option("--chown="));
        Copied { from, owner, source: source.to_owned(), target: target.to_owned() }
    });
    copies.collect()
}
