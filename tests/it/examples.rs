//! The examples are what people copy, so they are run as they stand.

use std::path::Path;
use std::process::Command;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn the_sandbox_example_is_ready_to_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let example = place.path().join("examples/sandbox");
    copy(&root.join("policies"), &place.path().join("policies"));
    for file in ["countersign.toml", "world.toml"] {
        std::fs::create_dir_all(&example).unwrap();
        std::fs::copy(root.join("examples/sandbox").join(file), example.join(file)).unwrap();
    }

    let adopted = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["vendors", "adopt", "--company", "blue-sparrow"])
        .current_dir(&example)
        .output()
        .unwrap();

    let said = String::from_utf8(adopted.stdout).unwrap();
    assert_eq!(said, "blue-sparrow: 2 vendors with 2 accounts adopted\n");
    assert!(adopted.status.success(), "{}", String::from_utf8_lossy(&adopted.stderr));
}
