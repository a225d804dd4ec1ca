//! The store under load, crashes, faults and attacks.
#![allow(unused_must_use, reason = "an answer that was unwrapped was looked at")]

#[cfg(test)]
#[cfg(unix)]
mod children;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod erasure;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod faults;
#[cfg(test)]
mod gate;
mod haste;
#[cfg(test)]
mod paging;
#[cfg(test)]
#[cfg(unix)]
mod processes;
#[cfg(test)]
mod random;
#[cfg(test)]
#[path = "../../../../tests/replayed.rs"]
mod replayed;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod room;
#[cfg(test)]
mod scene;
#[cfg(test)]
#[cfg(unix)]
mod sealing;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod shim;
#[cfg(test)]
#[cfg(unix)]
mod tree;
