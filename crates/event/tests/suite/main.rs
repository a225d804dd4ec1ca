//! The bytes of events: what is written, and what is read back and refused.

#[cfg(test)]
mod golden;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod random;
