//! Everything from outside, in one binary.
