//! Everything from outside, in one binary.

#[cfg(test)]
mod receipts;
#[cfg(test)]
mod store;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
