//! Keys and seals against loss, mix-ups and curious eyes.

#[cfg(test)]
#[cfg(unix)]
mod golden;
#[cfg(test)]
#[cfg(unix)]
mod keyring;
#[cfg(test)]
mod sealing;
