//! What the parts of the story tell each other, in a folder: which records the first part made, what
//! is done, and the agent's token.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use countersign_odoo::seed::Demo;
use serde::{Deserialize, Serialize};

/// Records by Odoo's ids, and the steps that are not to be done again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scene {
    /// ACME Supplies.
    pub(crate) acme: i32,
    /// Its account.
    pub(crate) acme_account: i32,
    /// Globex.
    pub(crate) globex: i32,
    /// ACME's first bill.
    pub(crate) inv_2290: i32,
    /// Globex's bill.
    pub(crate) inv_2291: i32,
    /// ACME's second bill, which nobody is to pay.
    pub(crate) tempting: i32,
    /// Umbrella, which really changes banks.
    pub(crate) umbrella: i32,
    /// Its bill.
    pub(crate) inv_2294: i32,
    /// What is done.
    pub(crate) done: BTreeSet<String>,
}

impl Scene {
    pub(crate) fn new(demo: &Demo, tempting: i32, (umbrella, inv_2294): (i32, i32)) -> Self {
        Self {
            acme: demo.acme.vendor,
            acme_account: demo.acme.account,
            globex: demo.globex.vendor,
            inv_2290: demo.inv_2290,
            inv_2291: demo.inv_2291,
            tempting,
            umbrella,
            inv_2294,
            done: BTreeSet::new(),
        }
    }
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder where it is not there yet.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("`{}`", path.display()))?;
        Ok(Self { path: path.to_owned() })
    }

    /// The scene, once the first part has begun.
    pub(crate) fn find_scene(&self) -> anyhow::Result<Option<Scene>> {
        let path = self.path.join("scene.json");
        match fs::read(&path) {
            Ok(text) => {
                let scene = serde_json::from_slice(&text);
                scene.map(Some).with_context(|| format!("`{}`", path.display()))
            }
            Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault).with_context(|| format!("`{}`", path.display())),
        }
    }

    pub(crate) fn keep_scene(&self, scene: &Scene) -> anyhow::Result<()> {
        write_private(&self.path.join("scene.json"), &serde_json::to_string(scene)?)
    }

    pub(crate) fn token(&self) -> anyhow::Result<String> {
        let path = self.path.join("token");
        fs::read_to_string(&path).with_context(|| format!("`{}`", path.display()))
    }

    pub(crate) fn keep_token(&self, token: &str) -> anyhow::Result<()> {
        write_private(&self.path.join("token"), token)
    }
}

/// Puts a file in its place, whole and readable by its owner only.
pub(crate) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    let named = || format!("`{}`", new.display());
    let folder = path.parent().context("a file without a folder")?;
    fs::create_dir_all(folder).with_context(named)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(&new).with_context(named)?;
    file.write_all(text.as_bytes()).with_context(named)?;
    file.sync_all().with_context(named)?;
    fs::rename(&new, path).with_context(named)
}

/// What is in a file with a password in it.
pub(crate) fn read_password(path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("`{}`", path.display()))?;
    let password = text.trim_end_matches(['\r', '\n']);
    anyhow::ensure!(!password.is_empty(), "`{}` holds no password", path.display());
    Ok(password.to_owned())
}
