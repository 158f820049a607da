//! API 3 and 4 as they are promised to whoever calls: each test is a row of their tables, or a rule
//! of the prose below them, that no test of a part tries (`tidy/rows.rs` has the list of all).

mod later;
mod mandates;
mod reading;
mod stages;
mod states;
mod waiting;
