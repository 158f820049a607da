//! The sandbox as every connector must be, and what it does beyond that.

#[cfg(test)]
mod changing;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod file;
#[cfg(test)]
mod giving;
#[cfg(test)]
mod measured;
#[cfg(test)]
mod surface;
#[cfg(test)]
mod world;
