//! The verifier against everybody who would rather not be verified.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod checkpoints;
#[cfg(test)]
#[cfg(feature = "database")]
mod database;
#[cfg(test)]
#[cfg(feature = "database")]
mod database_mutations;
#[cfg(test)]
mod expectations;
#[cfg(test)]
mod forge;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod log;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod noted;
#[cfg(test)]
mod packs;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reports;
#[cfg(test)]
#[cfg(feature = "database")]
mod sealed;
#[cfg(test)]
#[cfg(feature = "database")]
mod stored;
