//! The tests that drive the daemon from outside.

fn main() {}
