//! Canonical forms against shared cases, against other implementations and against each other.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod python;
#[cfg(test)]
mod random;
#[cfg(test)]
mod throughput;
