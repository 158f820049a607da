//! Hostile input, table by table. Whatever is sent, the daemon answers with the right status and
//! code, leaves a receipt or a count, moves nothing, and tells nothing: `arena::Arena::refuses` says
//! all of that of every row, so that a row is one line.
//!
//! `office`, `members` and `humans` are about the calls of humans; the rest is about those of agents
//! and of nobody. What attackers do in a row, with real bills and real money, is tried in `oracle`.

mod addresses;
mod amounts;
mod arena;
mod arguments;
mod bodies;
mod foreign;
mod headers;
mod humans;
mod ibans;
mod members;
mod office;
mod raw;
mod tokens;
