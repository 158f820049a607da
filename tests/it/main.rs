//! Everything from outside, in one binary.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod api;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bank;
#[cfg(test)]
mod bent;
#[cfg(test)]
mod between;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod check;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod compose;
#[cfg(test)]
mod daemon;
#[cfg(test)]
mod described;
#[cfg(test)]
mod duplicates;
#[cfg(test)]
mod exactly_once;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod facts;
#[cfg(test)]
mod full;
#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod guessing;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod http;
#[cfg(test)]
mod late;
#[cfg(test)]
mod live;
#[cfg(test)]
mod log;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod payments;
#[cfg(test)]
mod people;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod restoring;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sequences;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod store;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod unit;
#[cfg(test)]
mod verify;
#[cfg(test)]
mod votes;
