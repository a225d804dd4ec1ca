//! Records of others, and ours, against the rules.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod clouds;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod envelopes;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod signatures;
#[cfg(test)]
mod states;
#[cfg(test)]
mod trusting;
#[cfg(test)]
mod written;
