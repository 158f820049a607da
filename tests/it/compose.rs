//! What is in `docker/` agrees with itself and with the program. No container is started: what a
//! container engine does with it is tried by whoever has one, as `docker/README.md` says.

mod file;
mod image;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser as _;
use countersign::settings::{OdooSettings, Settings, parse_duration};

use arguments::{Arguments, Part};
use file::{Compose, Mount, Service};
use image::Stage;

#[path = "../../examples/odoo/arguments.rs"]
mod arguments;

const CONFIG: &str = "/etc/countersign/countersign.toml";
const PROGRAM: &str = "/usr/local/bin/countersign";
const STORY: &str = "/usr/local/bin/countersign-story";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn docker(name: &str) -> String {
    std::fs::read_to_string(root().join("docker").join(name)).unwrap()
}

fn compose() -> Compose {
    serde_saphyr::from_str(&docker("compose.yaml")).unwrap()
}

fn settings() -> Settings {
    Settings::load(&root().join("docker/countersign.toml")).unwrap()
}

fn odoo(settings: &Settings) -> &OdooSettings {
    settings.odoo().unwrap()
}

fn stages() -> Vec<Stage> {
    image::stages(&docker("Dockerfile"))
}

/// The services that are made of our own image, with the stages of it.
fn ours<'a>(
    compose: &'a Compose,
    stages: &'a [Stage],
) -> Vec<(&'a str, &'a Service, Vec<&'a Stage>)> {
    let built = compose.services.iter().filter_map(|(name, service)| {
        let build = service.build.as_ref()?;
        Some((name.as_str(), service, image::lineage(stages, &build.target)))
    });
    let found: Vec<_> = built.collect();
    let names: Vec<&str> = found.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["countersign", "play", "prepare"]);
    found
}

/// What a container of ours is started with, program first.
fn command_line(service: &Service, lineage: &[&Stage]) -> Vec<String> {
    assert_eq!(service.entrypoint, None);
    let mut line = image::words(&image::newest(lineage, "ENTRYPOINT").unwrap());
    line.extend(match &service.command {
        Some(command) => command.clone(),
        None => image::words(&image::newest(lineage, "CMD").unwrap()),
    });
    line
}

#[track_caller]
fn program_understands(line: &[String]) -> clap::ArgMatches {
    assert_eq!(line[0], PROGRAM);
    let read = countersign::cli::commands().try_get_matches_from(line);
    read.unwrap_or_else(|fault| panic!("{line:?}: {fault}"))
}

#[test]
fn names_in_the_file_lead_somewhere() {
    let compose = compose();
    let mut used: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (name, service) in &compose.services {
        let mut use_of = |kind, what: &str| {
            used.entry(kind).or_default().insert(what.to_owned());
        };
        service.networks().iter().for_each(|network| use_of("networks", network));
        service.secrets.iter().for_each(|secret| use_of("secrets", secret));
        for mount in service.mounts() {
            if mount.is_of_the_host() {
                let path = root().join("docker").join(&mount.source);
                assert!(path.is_file(), "{name}: `{}`", path.display());
                assert!(mount.read_only, "{name} could change `{}`", mount.source);
            } else {
                use_of("volumes", &mount.source);
            }
        }
        for (other, condition) in service.starts_after() {
            let other = compose.services.get(other).unwrap_or_else(|| panic!("no `{other}`"));
            match condition {
                "service_healthy" => assert!(other.healthcheck.is_some(), "{name}"),
                "service_completed_successfully" => assert_eq!(other.restart, "no", "{name}"),
                other => panic!("{name}: `{other}`"),
            }
        }
        if let Some(build) = &service.build {
            assert_eq!(
                (build.context.as_str(), build.dockerfile.as_str()),
                ("..", "docker/Dockerfile")
            );
        }
        if let Some(check) = &service.healthcheck {
            assert_eq!(check.test[0], "CMD", "{name}: no shell is asked");
            let length = |text: &String| parse_duration(text).unwrap();
            assert!(length(&check.interval) > Duration::ZERO && check.retries > 0);
            assert!(length(&check.timeout) <= Duration::from_secs(10));
            check.start_period.as_ref().map(length);
        }
    }
    let declared = |names: Vec<&String>| names.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(used["networks"], declared(compose.networks.keys().collect()));
    assert_eq!(used["volumes"], declared(compose.volumes.keys().collect()));
    assert_eq!(used["secrets"], declared(compose.secrets.keys().collect()));
}

#[test]
fn nobody_is_root_and_no_secret_is_in_the_environment() {
    let (compose, stages) = (compose(), stages());
    for (name, service, lineage) in ours(&compose, &stages) {
        let user = image::newest(&lineage, "USER").unwrap();
        // Numbers, so that whoever runs it can see that it is not root.
        let ids: Vec<u32> = user.split(':').map(|id| id.parse().unwrap()).collect();
        assert!(ids.len() == 2 && ids.iter().all(|id| *id >= 1000), "{name}: {user}");
        assert_eq!(service.user, None, "{name}: the image says it");
        assert!(service.read_only, "{name}");
    }
    for (name, service) in &compose.services {
        if service.build.is_none() {
            // These images have such a user, and their services run as it from the start.
            let known = [("postgres:16-bookworm", "postgres"), ("odoo:17", "odoo")];
            let is = (service.image.as_str(), service.user.as_deref().unwrap_or("root"));
            assert!(known.contains(&is), "{name}: {is:?}");
        }
        assert_eq!(service.cap_drop, ["ALL"], "{name}");
        assert_eq!(service.security_opt, ["no-new-privileges:true"], "{name}");
        for (variable, value) in &service.environment {
            let telling =
                ["PASS", "SECRET", "TOKEN", "KEY"].iter().any(|word| variable.contains(word));
            assert!(!telling || variable.contains("FILE"), "{name}: {variable}");
            if let Some(secret) = value.strip_prefix("/run/secrets/") {
                assert!(service.secrets.iter().any(|given| given == secret), "{name}: {value}");
            }
        }
        for word in service.command.iter().flatten() {
            if let Some((_, secret)) = word.split_once("/run/secrets/") {
                assert!(service.secrets.iter().any(|given| given == secret), "{name}: {word}");
            }
        }
    }
    for stage in &stages {
        let secrets = stage.lines.iter().filter(|(_, text)| text.contains("secret"));
        assert_eq!(secrets.count(), 0, "stage {}", stage.name);
    }
}

#[test]
fn the_daemon_starts_only_after_the_operators_part() {
    let compose = compose();
    let after = |name: &str| compose.services[name].starts_after();
    let (healthy, done) = ("service_healthy", "service_completed_successfully");
    assert_eq!(after("erp-init"), BTreeMap::from([("erp-db", healthy)]));
    assert_eq!(after("erp"), BTreeMap::from([("erp-db", healthy), ("erp-init", done)]));
    assert_eq!(after("prepare"), BTreeMap::from([("erp", healthy), ("store", healthy)]));
    assert_eq!(
        after("countersign"),
        BTreeMap::from([("erp", healthy), ("store", healthy), ("prepare", done)])
    );
    assert_eq!(after("play"), BTreeMap::from([("countersign", healthy)]));
    // It is played when somebody asks for it.
    let asked_for = |name: &str| !compose.services[name].profiles.is_empty();
    assert_eq!(
        compose.services.keys().filter(|name| asked_for(name)).collect::<Vec<_>>(),
        ["play"]
    );
}

#[test]
fn every_command_is_one_of_the_programs() {
    let (compose, stages) = (compose(), stages());
    for (name, service, lineage) in ours(&compose, &stages) {
        let line = command_line(service, &lineage);
        let programs = image::copied(&lineage);
        let program = programs.iter().find(|copied| copied.target == line[0]);
        assert_eq!(program.and_then(|copied| copied.from.as_deref()), Some("build"), "{name}");
        let is = match name {
            "countersign" => {
                let read = program_understands(&line);
                assert_eq!(read.subcommand_name(), Some("serve"));
                let config = read.get_one::<PathBuf>("config").unwrap();
                let folder = image::newest(&lineage, "WORKDIR").unwrap();
                assert_eq!(Path::new(&folder).join(config), Path::new(CONFIG));
                continue;
            }
            "prepare" => |part: &Part| matches!(part, Part::Prepare(_)),
            _ => |part: &Part| matches!(part, Part::Play(_)),
        };
        assert_eq!(line[0], STORY);
        let read =
            Arguments::try_parse_from(&line).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(read.part.as_ref().is_some_and(is), "{name}: {read:?}");
        assert_eq!(service.option("--config"), CONFIG);
        let mount = service.mount_of(service.option("--story"));
        assert_eq!(mount.read_only, name == "play");
    }
    let daemon = image::lineage(&stages, "daemon");
    for check in [
        compose.services["countersign"].healthcheck.as_ref().unwrap().test[1..].to_vec(),
        image::words(&image::newest(&daemon, "HEALTHCHECK").unwrap()),
    ] {
        assert_eq!(program_understands(&check).subcommand_name(), Some("healthcheck"));
    }
    // What waits for the daemon waits until it can pay.
    let check = &compose.services["countersign"].healthcheck.as_ref().unwrap().test;
    assert!(check.iter().any(|word| word == "--ready"));
    assert_eq!(compose.services["prepare"].option("--program"), PROGRAM);
}

#[test]
fn every_file_that_the_configuration_names_is_where_it_is_said() {
    let (compose, stages, settings) = (compose(), stages(), settings());
    let (daemon, prepare) = (&compose.services["countersign"], &compose.services["prepare"]);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let passfile = prepare.option("--passfile").to_owned();
    let odoo = odoo(&settings);
    let secrets =
        [&odoo.reader, &odoo.payer, &odoo.bank_admin].map(|login| text(&login.password_file));
    let checkpoint = text(settings.receipts.checkpoint_file.as_ref().unwrap());
    for path in secrets.iter().chain([&text(&settings.keys.dir), &passfile]) {
        let made = prepare.mount_of(path);
        let read = daemon.mount_of(path);
        assert!(made.source == read.source && !made.is_of_the_host(), "{path}");
        // The daemon changes nothing of its own keys and passwords.
        assert!(!made.read_only && read.read_only, "{path}");
        // Whoever has that volume does not have the checkpoint.
        assert_ne!(daemon.mount_of(&checkpoint).source, read.source);
    }
    for service in [daemon, prepare] {
        assert_eq!(service.environment["PGPASSFILE"], passfile);
        let kept = service.mount_of(&checkpoint);
        assert!(!kept.read_only && !kept.is_of_the_host());
        // A relative path is seen from the configuration's folder.
        let vop = Path::new(CONFIG).parent().unwrap().join(settings.vop.path.as_ref().unwrap());
        let vop = service.mount_of(&text(&vop));
        assert_eq!(vop.source, "../examples/odoo/vop.toml");
    }
    for (name, service, lineage) in ours(&compose, &stages) {
        assert_eq!(service.mount_of(CONFIG).source, "./countersign.toml", "{name}");
        let copied = image::copied(&lineage);
        let policies = copied.iter().find(|copied| copied.target == text(&settings.policy.dir));
        assert_eq!(policies.map(|copied| copied.source.as_str()), Some("policies"), "{name}");
        // A volume that nobody has written to yet takes its owner from the image.
        let user = image::newest(&lineage, "USER").unwrap();
        let volumes = service.mounts().into_iter().filter(|mount| !mount.is_of_the_host());
        for Mount { target, .. } in volumes {
            let owner = copied.iter().find(|copied| copied.target == target);
            assert_eq!(owner.and_then(|copied| copied.owner.as_ref()), Some(&user), "{target}");
        }
    }
}

/// User, host, port and database of a store's address.
fn store_address(url: &str) -> (&str, &str, &str, &str) {
    let (user, rest) = url.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (host, database) = rest.split_once('/').unwrap();
    let (host, port) = host.split_once(':').unwrap();
    assert!(!user.contains(':'), "a password stands in the configuration");
    (user, host, port, database)
}

#[test]
fn addresses_and_names_agree() {
    let (compose, stages, settings) = (compose(), stages(), settings());
    let daemon = &compose.services["countersign"];
    let (user, host, port, database) = store_address(&settings.store.url);
    let store = &compose.services[host];
    assert_eq!((store.environment["POSTGRES_USER"].as_str(), port), (user, "5432"));
    assert_eq!(store.environment["POSTGRES_DB"], database);
    let of_store = compose.services["prepare"].option("--store-password-file");
    assert_eq!(store.environment["POSTGRES_PASSWORD_FILE"], of_store);

    let odoo = odoo(&settings);
    let host = odoo.url.strip_prefix("http://").and_then(|url| url.strip_suffix(":8069")).unwrap();
    let erp = &compose.services[host];
    let line = erp.command.as_ref().unwrap();
    assert!(line.contains(&format!("--database={}", odoo.database)), "{line:?}");
    // Compose reads `$$` as one.
    assert!(line.contains(&format!("--db-filter=^{}$$", odoo.database)), "{line:?}");
    assert!(line.contains(&"--no-database-list".to_owned()), "{line:?}");
    let made = compose.services["erp-init"].command.as_ref().unwrap().join(" ");
    assert!(made.contains(&format!(" --database={} ", odoo.database)), "{made}");
    assert!(made.contains(" --init=account,base_iban --without-demo=all "), "{made}");
    // What says that it is made is what is looked for.
    assert_eq!(made.matches("/var/lib/odoo/made").count(), 2, "{made}");
    for service in [erp, &compose.services["erp-init"]] {
        let database = &compose.services[&service.environment["HOST"]];
        assert_eq!(service.environment["USER"], database.environment["POSTGRES_USER"]);
        assert_eq!(
            service.environment["PASSWORD_FILE"],
            database.environment["POSTGRES_PASSWORD_FILE"]
        );
        assert!(service.mounts().iter().any(|mount| mount.holds("/var/lib/odoo/made")));
    }
    // Both are in plain text on networks of their own, which is said beside their addresses.
    assert!(settings.store.allow_plaintext && odoo.allow_plaintext);

    let exposed = image::newest(&image::lineage(&stages, "daemon"), "EXPOSE").unwrap();
    let port = settings.server.listen.port().to_string();
    assert_eq!(
        (&exposed, daemon.ports.as_slice()),
        (&port, &[format!("127.0.0.1:{port}:{port}")][..])
    );
    let name = settings.server.public_url.strip_prefix("http://").unwrap();
    let (name, public_port) = name.split_once(':').unwrap();
    assert_eq!((daemon.aliases("agents"), public_port), (&[name.to_owned()][..], port.as_str()));
    // The host knows it without being told.
    assert!(name.ends_with(".localhost") && settings.server.listen.ip().is_unspecified());

    let grace = parse_duration(daemon.stop_grace_period.as_ref().unwrap()).unwrap();
    assert!(grace >= settings.erp.call_deadline() + Duration::from_secs(30), "{grace:?}");
}

#[test]
fn each_network_has_those_on_it_that_need_it() {
    let compose = compose();
    let on = |network: &str| {
        let services = compose.services.iter();
        let found = services.filter(|(_, service)| service.networks().contains(&network));
        found.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(on("erp-db"), ["erp", "erp-db", "erp-init"]);
    assert_eq!(on("erp"), ["countersign", "erp", "play", "prepare"]);
    assert_eq!(on("store"), ["countersign", "prepare", "store"]);
    assert_eq!(on("agents"), ["countersign", "play"]);
    let outward = compose.networks.iter().filter(|(_, network)| !network.internal);
    assert_eq!(outward.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["agents"]);
    let published = compose.services.iter().filter(|(_, service)| !service.ports.is_empty());
    assert_eq!(published.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["countersign"]);
}

#[test]
fn the_secrets_that_are_mounted_are_those_that_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("make-secrets");
    std::fs::copy(root().join("docker/make-secrets"), &script).unwrap();
    let run = || {
        let output = Command::new("sh").arg(&script).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run();
    let secrets = folder.path().join("secrets");
    let read = || {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(&secrets).unwrap().map(Result::unwrap) {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            let text = std::fs::read_to_string(entry.path()).unwrap();
            assert_eq!((mode, text.len()), (0o644, 48), "{:?}", entry.file_name());
            found.insert(format!("./secrets/{}", entry.file_name().to_str().unwrap()), text);
        }
        found
    };
    let made = read();
    assert_eq!(std::fs::metadata(&secrets).unwrap().permissions().mode() & 0o777, 0o700);
    let compose = compose();
    let mounted: BTreeSet<&String> = compose.secrets.values().map(|secret| &secret.file).collect();
    assert_eq!(made.keys().collect::<BTreeSet<_>>(), mounted);
    assert_eq!(made.values().collect::<BTreeSet<_>>().len(), made.len(), "two are the same");
    run();
    assert_eq!(read(), made, "one that is there stays");
    let ignored = std::fs::read_to_string(root().join(".gitignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "/docker/secrets"));
}

#[test]
fn the_image_is_built_from_this_tree_with_its_own_rust() {
    let stages = stages();
    let manifest: toml::Table =
        toml::from_str(&std::fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let rust = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    // The program runs with the C library of the release that it was built on.
    assert_eq!(stages[0].from, format!("rust:{rust}-slim-bookworm"));
    assert_eq!(stages[1].from, "gcr.io/distroless/cc-debian12:nonroot");
    let (_, build) = stages[0].lines.iter().find(|(word, _)| word == "RUN").unwrap();
    for part in [
        "cargo build --release --locked --bin countersign --example odoo",
        "install -D target/release/countersign /out/countersign",
        "install -D target/release/examples/odoo /out/countersign-story",
    ] {
        assert!(build.contains(part), "no `{part}` in {build}");
    }
    let of_context: BTreeSet<String> = ["daemon", "story"]
        .iter()
        .flat_map(|target| image::copied(&image::lineage(&stages, target)))
        .filter(|copied| copied.from.is_none())
        .map(|copied| copied.source)
        .collect();
    let ignore = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    let rules: Vec<&str> =
        ignore.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(rules[0], "*", "nothing is in the context that is not named");
    let (named, left_out): (Vec<&str>, Vec<&str>) =
        rules[1..].iter().partition(|rule| rule.starts_with('!'));
    let named: BTreeSet<&str> = named.iter().map(|rule| rule.trim_start_matches('!')).collect();
    assert_eq!(
        named,
        ["Cargo.lock", "Cargo.toml", "benches", "connectors", "examples", "policies", "src"].into()
    );
    assert!(named.iter().all(|name| root().join(name).exists()));
    assert!(of_context.iter().all(|source| named.contains(source.as_str())), "{of_context:?}");
    // What is left out of them is nothing that a build needs.
    assert!(left_out.iter().all(|rule| rule.starts_with("examples/*/")), "{left_out:?}");
    for example in ["odoo", "load"] {
        for rule in &left_out {
            let path = root().join(rule.replace('*', example));
            assert!(!path.is_file() || rule.ends_with("checkpoint.txt"), "{}", path.display());
        }
    }
}
