#[path = "../../../../../tests/replayed.rs"]
mod replayed;

use std::path::Path;

use countersign_engine::{Engine, Origin, SystemClock};
use countersign_event::{EventType, Line, Scope};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_store::{Filter, Folder, Options, Store};

use super::super::link::Opened;
use super::super::upstream::Remote;
use super::*;
use crate::stdio::Host;
use crate::tools::{Book, Definition, Shelf};
use crate::{Gate, Session, Settings};

struct Nobody;

impl Host for Nobody {
    fn judge(&mut self, _: &[Arc<Definition>]) -> Option<Shelf> {
        None
    }
}

impl Reception for Nobody {
    fn receive(&self, _: Vec<(&'static str, Json)>) -> Result<Opened, String> {
        Err("nobody is let in".to_owned())
    }

    fn server_not_started(&self, _: &std::io::Error) {}
}

/// A lobby with two places, and the log of its sessions.
struct Scene {
    lobby: Arc<Lobby>,
    engine: Arc<Engine>,
    _folder: replayed::Kept,
}

impl Scene {
    fn new() -> Self {
        let folder = replayed::folder();
        let store = Store::open(&Folder::new(folder.path()), Options::default()).unwrap();
        let policies = Policies::new(Capability::new(None).unwrap());
        let limits = Limits {
            max_sessions: 2,
            ..Limits::default()
        };
        let threads = Threads::new(4);
        threads.start_here();
        let lobby = Lobby::new(
            Upstream::Http(Remote::new("http://127.0.0.1:9/").unwrap()),
            Arc::new(Nobody),
            limits,
            Room::new(1 << 20),
            threads,
            Census::default(),
        );
        Self {
            lobby,
            engine: Arc::new(Engine::new(store, policies, SystemClock)),
            _folder: folder,
        }
    }

    fn link(&self, name: &str, address: &str) -> Arc<Link> {
        let scope = Scope::new("t", name).unwrap();
        let origin = Origin::new("operator", "agent", Path::new("/")).unwrap();
        let gate = Gate::new(Arc::clone(&self.engine), scope, "toy", origin);
        let shelf = Shelf::new(Book::new("toy"), Vec::new());
        let opened = Opened {
            gate,
            session: Session::new(Settings::new("toy", "n0nce", "0ther"), shelf),
            host: Box::new(Nobody),
            name: format!("{name}-of-the-door"),
        };
        let peer = Peer::of(address.parse().unwrap());
        let (threads, census) = (self.lobby.threads.clone(), self.lobby.census.clone());
        Link::new(opened, peer, threads, census)
    }

    /// A session of this name takes a place.
    async fn place(&self, name: &str, address: &str) -> Result<(), Loss> {
        let link = self.link(name, address);
        self.lobby.register_as(name, &link).await
    }

    /// The same, and its client was told to come back with something.
    async fn asks_people(&self, name: &str, address: &str) {
        let link = self.link(name, address);
        link.session().told_to_come_back(Instant::now());
        self.lobby.remember(format!("handle of {name}"), &link);
        assert!(self.lobby.register_as(name, &link).await.is_ok());
    }

    fn ends(&self) -> Vec<String> {
        std::thread::scope(|threads| threads.spawn(|| self.engine.flush().unwrap()).join())
            .unwrap();
        let page = self.engine.store().reader();
        let page = page.page(&Filter::default(), None, 1000).unwrap();
        let ends = page.events.iter().filter_map(|event| {
            let line = Line::read(&event.line).unwrap();
            let is_end = line.event_type == EventType::Termination;
            is_end.then(|| {
                let payload = self.engine.store().reader().open_payload(event).unwrap();
                payload
                    .get("reason_code")
                    .unwrap()
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
        });
        ends.collect()
    }
}

#[tokio::test]
async fn who_keeps_all_places_for_what_people_are_asked_keeps_nobody_else_out() {
    let scene = Scene::new();
    let (one, other) = ("10.0.0.1", "10.0.0.2");
    scene.asks_people("a", one).await;
    scene.asks_people("b", one).await;
    assert_eq!(scene.place("c", one).await, Err(FULL));
    assert!(
        scene
            .lobby
            .has_place(Peer::of(other.parse().unwrap()))
            .is_ok()
    );
    assert_eq!(scene.place("d", other).await, Ok(()));
    // The one that was unused for longer has ended, also for whoever brings back what it gave out.
    assert!(scene.lobby.that_gave("handle of a").is_none());
    assert!(scene.lobby.that_gave("handle of b").is_some());
    for _ in 0..500 {
        if scene.ends().contains(&"place_taken".to_owned()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(scene.ends(), ["client_closed", "place_taken"]);
    // Half of the places are no more than its share.
    assert_eq!(scene.place("e", "10.0.0.3").await, Ok(()));
    assert!(scene.lobby.that_gave("handle of b").is_some());
    scene.lobby.close();
}

#[tokio::test]
async fn a_session_with_two_names_makes_place_too() {
    let scene = Scene::new();
    let link = scene.link("a", "10.0.0.1");
    for name in ["a1", "a2"] {
        assert_eq!(scene.lobby.register_as(name, &link).await, Ok(()));
    }
    assert_eq!(scene.place("b", "10.0.0.2").await, Err(FULL));
    drop(link);
    assert_eq!(scene.place("c", "10.0.0.2").await, Ok(()));
    scene.lobby.close();
}

#[tokio::test]
async fn whoever_is_given_most_to_come_back_with_forgets_the_first_of_it() {
    let scene = Scene::new();
    let (greedy, other) = (scene.link("a", "10.0.0.1"), scene.link("b", "10.0.0.1"));
    scene.lobby.remember("other".to_owned(), &other);
    for number in 0..10 {
        scene.lobby.remember(format!("greedy {number}"), &greedy);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // There are two places for it here.
    assert!(scene.lobby.that_gave("other").is_some());
    let kept = (0..10).filter(|number| {
        let handle = format!("greedy {number}");
        scene.lobby.that_gave(&handle).is_some()
    });
    assert_eq!(kept.collect::<Vec<_>>(), [9]);
    drop((greedy, other));
    scene.lobby.close();
}
