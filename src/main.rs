//! The command `countersign`.

fn main() {}
