//! The systemd unit agrees with the program and with what `docs/OPERATING.md` says about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::settings::{Settings, parse_duration};

const PROGRAM: &str = "/usr/bin/countersign";
const CONFIG: &str = "/etc/countersign/countersign.toml";
const STATE: &str = "/var/lib/countersign";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Section, name and value of each line.
fn unit() -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in read("docker/countersign.service").lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if !line.is_empty() && !line.starts_with('#') {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("`{line}`"));
            found.push((section.clone(), name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// All values of a name in `[Service]`.
fn values(name: &str) -> Vec<String> {
    let lines = unit().into_iter();
    let named = lines.filter(|(section, found, _)| section == "Service" && found == name);
    named.map(|(.., value)| value).collect()
}

#[track_caller]
fn value(name: &str) -> String {
    let found = values(name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found[0].clone()
}

/// The section of the documentation on this unit.
fn documentation() -> String {
    let text = read("docs/OPERATING.md");
    let (_, text) = text.split_once("\n### systemd\n").unwrap();
    text.split_once("\n## ").unwrap().0.to_owned()
}

/// What stands there in blocks of that language.
fn blocks(language: &str) -> Vec<String> {
    let text = documentation();
    let parts = text.split("\n```").skip(1).step_by(2);
    parts.filter_map(|block| Some(block.strip_prefix(language)?.to_owned())).collect()
}

fn settings() -> Settings {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("countersign.toml");
    let blocks = blocks("toml\n");
    assert_eq!(blocks.len(), 1);
    std::fs::write(&file, &blocks[0]).unwrap();
    Settings::load(&file).unwrap()
}

#[track_caller]
fn understood(line: &[&str]) -> clap::ArgMatches {
    let read = countersign::cli::commands().try_get_matches_from(line);
    read.unwrap_or_else(|fault| panic!("{line:?}: {fault}"))
}

#[test]
fn the_unit_starts_what_there_is() {
    let line = value("ExecStart");
    let words: Vec<&str> = line.split(' ').collect();
    let read = understood(&words);
    assert_eq!((words[0], read.subcommand_name()), (PROGRAM, Some("serve")));
    assert_eq!(read.get_one::<PathBuf>("config").unwrap(), Path::new(CONFIG));
    assert_eq!(value("ExecReload"), "/bin/kill -HUP $MAINPID");
    // The main process alone is told to stop, by the signal that it waits for.
    assert_eq!((value("KillMode").as_str(), values("KillSignal").len()), ("mixed", 0));
    let grace = parse_duration(&value("TimeoutStopSec")).unwrap();
    assert!(grace >= settings().erp.call_deadline() + Duration::from_secs(30), "{grace:?}");
}

#[test]
fn the_unit_gives_the_daemon_no_more_than_it_needs() {
    assert_eq!(value("User"), "countersign");
    for (name, wanted) in [
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"),
        ("PrivateUsers", "yes"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("AmbientCapabilities", ""),
        ("MemoryDenyWriteExecute", "yes"),
        ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX"),
        ("RestrictNamespaces", "yes"),
        ("SystemCallArchitectures", "native"),
        ("StateDirectory", "countersign"),
        ("StateDirectoryMode", "0700"),
        ("UMask", "0077"),
    ] {
        assert_eq!(value(name), wanted, "{name}");
    }
    assert_eq!(values("SystemCallFilter"), ["@system-service", "~@privileged @resources"]);
    assert!(values("ReadWritePaths").is_empty() && values("LoadCredential").is_empty());
    for variable in values("Environment") {
        assert!(variable.starts_with("PGPASSFILE="), "{variable}");
    }
}

#[test]
fn what_is_written_is_where_the_unit_lets_it_be() {
    let settings = settings();
    let odoo = settings.odoo().unwrap();
    let environment = value("Environment");
    let passfile = environment.strip_prefix("PGPASSFILE=").unwrap();
    let logins = [&odoo.reader, &odoo.payer, &odoo.bank_admin];
    let secret = logins.map(|login| login.password_file.clone());
    for path in secret.iter().chain([&settings.keys.dir, &PathBuf::from(passfile)]) {
        assert!(path.starts_with(STATE), "{}", path.display());
    }
    assert_eq!(STATE, format!("/var/lib/{}", value("StateDirectory")));
    // Who has the state does not have the checkpoint, and the drop-in lets the daemon write it.
    let checkpoint = settings.receipts.checkpoint_file.as_ref().unwrap();
    assert!(!checkpoint.starts_with(STATE));
    let folder = checkpoint.parent().unwrap().display().to_string();
    assert_eq!(blocks("ini\n"), [format!("[Service]\nReadWritePaths={folder}")]);
    assert!(settings.policy.dir.starts_with(Path::new(CONFIG).parent().unwrap()));
    let shown = blocks("console\n").join("\n");
    for path in
        [&folder, STATE, PROGRAM.strip_suffix("countersign").unwrap(), "docker/countersign.service"]
    {
        assert!(shown.contains(path), "no `{path}` in {shown}");
    }
    assert!(
        shown.contains(&format!("PGPASSFILE={passfile} countersign --config {CONFIG}'")),
        "{shown}"
    );
}

#[test]
fn the_commands_that_are_shown_are_the_programs() {
    let mut tried = Vec::new();
    for line in blocks("console\n").iter().flat_map(|block| block.lines()) {
        if let Some(arguments) = line.strip_prefix("# cs ") {
            let words: Vec<&str> = [PROGRAM].into_iter().chain(arguments.split(' ')).collect();
            tried.push(understood(&words).subcommand_name().unwrap().to_owned());
        }
    }
    assert_eq!(tried, ["odoo", "vendors", "check"]);
}
