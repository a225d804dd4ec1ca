//! How far somebody is trusted, and that nobody gains trust by being started.

use crate::names::names;

names! {
    /// How far the acting agent is trusted. Ordered: the later value is the higher one.
    Trust as "level of trust" {
        /// Content from outside steers it.
        Untrusted = "untrusted",
        /// It was started or handed over to by somebody who had taken in content from outside.
        Reduced = "reduced",
        /// Nothing from outside has reached it.
        Full = "full",
    }
}

impl Trust {
    /// The trust of a child that asks for some: never more than its parent has.
    #[must_use]
    pub fn child(self, requested: Self) -> Self {
        self.min(requested)
    }

    /// The trust left after content from outside was taken in.
    #[must_use]
    pub fn after_outside_content(self) -> Self {
        self.min(Self::Untrusted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m01_a_child_has_the_lower_of_parent_and_request() {
        for &parent in Trust::ALL {
            for &requested in Trust::ALL {
                let child = parent.child(requested);
                assert!(child <= parent && child <= requested);
                assert!(child == parent || child == requested);
            }
        }
    }

    #[test]
    fn m02_no_chain_raises_trust() {
        let levels = Trust::ALL.len();
        for chain in 0..levels.pow(5) {
            for &root in Trust::ALL {
                let mut trust = root;
                for depth in 0..5 {
                    let requested = Trust::ALL[chain / levels.pow(depth) % levels];
                    let child = trust.child(requested);
                    assert!(child <= trust);
                    trust = child;
                }
            }
        }
    }

    #[test]
    fn m03_outside_content_lowers_trust_and_its_text_keeps_it() {
        for &trust in Trust::ALL {
            let lowered = trust.after_outside_content();
            assert_eq!(lowered, Trust::Untrusted);
            assert_eq!(lowered.child(Trust::Full), Trust::Untrusted);
            assert_eq!(trust.as_str().parse(), Ok(trust));
        }
    }
}
