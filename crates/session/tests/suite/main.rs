//! Snapshots: what events make of them, the loops they show, their exact bytes.

#[cfg(test)]
mod effects;
#[cfg(test)]
mod form;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod history;
#[cfg(test)]
mod loops;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod random;
#[cfg(test)]
mod recorded;
