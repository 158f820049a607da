//! The daemon and its commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    countersign::cli::run()
}
