//! Who makes place at a door where all places are taken.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use crate::session::Unfinished;

/// Whoever comes from there, as far as a door can tell: behind a front-end all clients are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer(IpAddr);

/// A session that has a place.
pub(super) struct Occupant<'a> {
    pub(super) name: &'a str,
    pub(super) peer: Peer,
    /// Nobody has it in hand, and this is not over. None where it stays in any case.
    pub(super) unfinished: Option<Unfinished>,
    pub(super) used: Instant,
}

impl Peer {
    pub(super) fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self(match address {
            // Whoever is on this machine has all of these.
            any if any.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            // Whoever has one of these has all of its network.
            IpAddr::V6(one) => IpAddr::V6(Ipv6Addr::from(u128::from(one) & NETWORK)),
            one @ IpAddr::V4(_) => one,
        })
    }
}

/// The session that makes place for one more of the newcomer's: of whoever has the most, the one that was unused
/// for longest. Who has fewer than the newcomer makes none.
///
/// A session of which something is not over stays. Only what waits for people, and was not begun, goes too, where
/// its peer has more than half of all places and so keeps others out.
pub(super) fn who_goes<'a>(all: &[Occupant<'a>], newcomer: Peer) -> Option<&'a str> {
    let mut shares: HashMap<Peer, usize> = HashMap::from([(newcomer, 1)]);
    for one in all {
        *shares.entry(one.peer).or_default() += 1;
    }
    let share = |one: &Occupant<'_>| shares.get(&one.peer).copied().unwrap_or_default();
    let own = shares.get(&newcomer).copied().unwrap_or_default();
    let may_go = |one: &&Occupant<'_>| match one.unfinished {
        Some(Unfinished::Nothing) => share(one) >= own,
        Some(Unfinished::AskedPeople) => one.peer != newcomer && share(one) > all.len() / 2,
        Some(Unfinished::Call) | None => false,
    };
    let first = all.iter().filter(may_go).max_by_key(|one| {
        let is_over = one.unfinished == Some(Unfinished::Nothing);
        (share(one), is_over, Reverse(one.used))
    });
    first.map(|one| one.name)
}

/// What belongs to one network.
const NETWORK: u128 = u128::MAX << 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOTHING: Option<Unfinished> = Some(Unfinished::Nothing);
    const PEOPLE: Option<Unfinished> = Some(Unfinished::AskedPeople);
    const CALL: Option<Unfinished> = Some(Unfinished::Call);

    fn peer(address: &str) -> Peer {
        Peer::of(address.parse().unwrap())
    }

    /// Who goes of sessions that were used one after the other.
    fn goes(all: &[(&'static str, &str, Option<Unfinished>)], newcomer: &str) -> &'static str {
        let began = Instant::now();
        let all = all.iter().zip(0..);
        let all: Vec<_> = all
            .map(|(&(name, address, unfinished), second)| Occupant {
                name,
                peer: peer(address),
                unfinished,
                used: began + Duration::from_secs(second),
            })
            .collect();
        who_goes(&all, peer(newcomer)).unwrap_or("nobody")
    }

    #[test]
    fn addresses_that_one_machine_has_are_one_peer() {
        for (one, other) in [
            ("127.0.0.1", "127.255.3.4"),
            ("127.0.0.1", "::1"),
            ("10.0.0.1", "::ffff:10.0.0.1"),
            ("2001:db8::1", "2001:db8::ffff:2"),
        ] {
            assert_eq!(peer(one), peer(other), "{one} {other}");
        }
        for (one, other) in [
            ("10.0.0.1", "10.0.0.2"),
            ("10.0.0.1", "127.0.0.1"),
            ("2001:db8::1", "2001:db8:0:1::1"),
        ] {
            assert_ne!(peer(one), peer(other), "{one} {other}");
        }
    }

    #[test]
    fn of_whoever_has_the_most_the_longest_unused_goes() {
        let all = [
            ("a1", "10.0.0.1", NOTHING),
            ("b1", "10.0.0.2", NOTHING),
            ("b2", "10.0.0.2", NOTHING),
            ("b3", "10.0.0.2", NOTHING),
        ];
        for newcomer in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
            assert_eq!(goes(&all, newcomer), "b1", "{newcomer}");
        }
    }

    #[test]
    fn who_asks_for_more_than_others_have_makes_place_itself() {
        let all = [
            ("a1", "10.0.0.1", NOTHING),
            ("b1", "10.0.0.2", NOTHING),
            ("a2", "10.0.0.1", NOTHING),
            ("b2", "10.0.0.2", NOTHING),
        ];
        assert_eq!(goes(&all, "10.0.0.2"), "b1");
        let all = [("a1", "10.0.0.1", NOTHING), ("b1", "10.0.0.2", CALL)];
        assert_eq!(goes(&all, "10.0.0.2"), "nobody");
        assert_eq!(goes(&all, "10.0.0.3"), "a1");
    }

    #[test]
    fn what_is_not_over_stays_unless_it_waits_for_people_and_keeps_others_out() {
        let all = [
            ("called", "10.0.0.1", CALL),
            ("in hand", "10.0.0.1", None),
            ("asked", "10.0.0.1", PEOPLE),
            ("asked later", "10.0.0.1", PEOPLE),
            ("other", "10.0.0.2", NOTHING),
        ];
        assert_eq!(goes(&all, "10.0.0.3"), "asked");
        assert_eq!(goes(&all, "10.0.0.1"), "nobody");
        // What loses nothing goes first, also where it was used later.
        let all = [all[2], all[3], ("over", "10.0.0.1", NOTHING)];
        assert_eq!(goes(&all, "10.0.0.3"), "over");
        // Half of all places may wait for people.
        let all = [
            all[0],
            all[1],
            ("b", "10.0.0.2", CALL),
            ("c", "10.0.0.3", CALL),
        ];
        assert_eq!(goes(&all, "10.0.0.4"), "nobody");
    }
}
