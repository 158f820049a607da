//! API 2 and 4: humans who sign in, what they may do, and what ends with them.

mod sessions;
