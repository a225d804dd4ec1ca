//! The transparency log over HTTP, read by a program that others wrote.

use countersign_api::{ROUTES, Role};
use countersign_canon::{Hash, Json};
use countersign_tlog::{Key, ProofFile, consistency, hash};
use signed_note::{StandardVerifier, VerifierList};
use tlog_tiles::{Checkpoint, Tile, TileHashReader, TileReader, check_record, check_tree};
use tlog_tiles::{prove_record, prove_tree, record_hash};

use crate::scene::{Answer, Scene};

/// The API, as their reader asks for tiles.
struct Served<'a> {
    scene: &'a Scene,
    token: &'a str,
}

impl Served<'_> {
    fn get(&self, path: &str) -> Answer {
        self.scene.get(&format!("/v1/log/{path}"), self.token)
    }

    fn good(&self, path: &str) -> Answer {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}");
        answer
    }

    /// The size and the root of the checkpoint, if the key that is served has signed it.
    fn checkpoint(&self) -> (u64, tlog_tiles::Hash) {
        let note = self.good("checkpoint").body;
        let note = signed_note::Note::from_bytes(&note).unwrap();
        let key = String::from_utf8(self.good("key").body).unwrap();
        let key = StandardVerifier::new(key.lines().next().unwrap()).unwrap();
        let keys = VerifierList::new(vec![Box::new(key)]);
        assert_eq!(note.verify(&keys).unwrap().0.len(), 1);
        let checkpoint = Checkpoint::from_bytes(note.text()).unwrap();
        assert_eq!(checkpoint.origin(), "example.com/log");
        (checkpoint.size(), *checkpoint.hash())
    }

    fn entry(&self, index: u64, size: u64) -> Vec<u8> {
        let (number, place) = (index / 256, usize::try_from(index % 256).unwrap());
        let name = match size - number * 256 {
            width if width < 256 => format!("tile/entries/{number:03}.p/{width}"),
            _ => format!("tile/entries/{number:03}"),
        };
        let bundle = self.good(&name).body;
        assert_eq!(bundle[place * 34..place * 34 + 2], [0, 32]);
        bundle[place * 34 + 2..place * 34 + 34].to_vec()
    }
}

impl TileReader for Served<'_> {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        // Their paths name the height of a tile, which is always the same, as well.
        let path = |tile: &Tile| tile.path().replacen("tile/8/", "tile/", 1);
        Ok(tiles
            .iter()
            .map(|tile| self.good(&path(tile)).body)
            .collect())
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

fn record(scene: &Scene, events: usize) {
    use countersign_event::{EventType, Payload, Scope};
    let scope = Scope::new("acme", "s1").unwrap();
    let payload = Payload::admit(EventType::MemoryWrite, crate::scene::json("{}")).unwrap();
    for _ in 0..events {
        let recorded = scene
            .engine
            .record(&scope, EventType::MemoryWrite, payload.clone());
        assert!(recorded.is_ok());
    }
}

#[test]
fn others_accept_the_checkpoint_and_prove_events_from_what_is_served() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Auditor);
    let served = Served {
        scene: &scene,
        token: &token,
    };
    let none = served.get("checkpoint");
    assert_eq!((none.status, none.text("code").as_str()), (404, "C0208"));
    record(&scene, 300);
    let name = Some("example.com/log");
    assert!(scene.engine.store().publish(name).is_ok());
    let (old_size, old_root) = served.checkpoint();
    record(&scene, 50);
    // What no checkpoint covers is not served.
    assert_eq!(served.get("tile/entries/001.p/94").status, 404);
    assert_eq!(served.get("inclusion?index=300").status, 404);
    assert!(scene.engine.store().publish(name).is_ok());
    let (size, root) = served.checkpoint();
    assert_eq!((old_size, size), (300, 350));
    let reader = TileHashReader::new(size, root, &served);
    for index in [0, 255, 256, 299, 349] {
        let proof = prove_record(size, index, &reader).unwrap();
        let hash = record_hash(&served.entry(index, size));
        check_record(&proof, size, root, index, hash).unwrap();
        assert!(check_record(&proof, size, root, index, record_hash(b"another")).is_err());
    }
    let proof = prove_tree(size, old_size, &reader).unwrap();
    check_tree(&proof, size, root, old_size, old_root).unwrap();
    // A narrower part of a tile that has grown since is still there, for readers of the older one.
    served.good("tile/0/001.p/44");
    let full = served.good("tile/0/000");
    assert!(full.header("cache-control").unwrap().contains("immutable"));
    for nothing in [
        "tile/0/002",
        "tile/0/001",
        "tile/0/000.p/256",
        "tile/9/000",
        "tile/0/0",
        "tile/x",
        "tile/0/../0",
        "tile/entries/x018/446/744/073/709/551",
        "tile/0/x999/x999/x999/x999/x999/x999/999",
    ] {
        assert_eq!(served.get(nothing).status, 404, "{nothing}");
    }
}

#[test]
fn proofs_that_are_served_hold_and_have_their_described_shape() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Auditor);
    let served = Served {
        scene: &scene,
        token: &token,
    };
    record(&scene, 10);
    assert!(
        scene
            .engine
            .store()
            .publish(Some("example.com/log"))
            .is_ok()
    );
    let fits = |path: &str, answer: &Answer| {
        let mut routes = ROUTES.iter();
        let route = routes.find(|route| route.path == path).unwrap();
        route.fits(answer.status, &answer.json()).unwrap();
    };
    let by_place = served.good("inclusion?tenant_id=acme&session_id=s1&seq=4");
    fits("/v1/log/inclusion", &by_place);
    assert_eq!(served.good("inclusion?index=4").body, by_place.body);
    let key = String::from_utf8(served.good("key").body).unwrap();
    let key: Key = key.trim().parse().unwrap();
    let proof = ProofFile::read(by_place.text("proof").as_bytes()).unwrap();
    assert!(proof.note.verify(&key).is_ok());
    let event: Hash = by_place.text("event").parse().unwrap();
    let leaf = hash::leaf(event.as_bytes());
    let root: Hash = by_place.text("root").parse().unwrap();
    let proven = countersign_tlog::inclusion::root(4, leaf, 10, &proof.path);
    assert_eq!(proven, Some(root));

    let grown = served.good("consistency?old=3");
    fits("/v1/log/consistency", &grown);
    let hashes = grown.json();
    let hashes = hashes.get("hashes").and_then(Json::as_array).unwrap();
    let hashes: Vec<Hash> = hashes
        .iter()
        .map(|hash| hash.as_str().unwrap().parse().unwrap())
        .collect();
    let (old, new) = (grown.text("old_root"), grown.text("new_root"));
    let (old, new): (Hash, Hash) = (old.parse().unwrap(), new.parse().unwrap());
    assert!(consistency::check((3, old), (10, new), &hashes));
    assert!(!consistency::check((3, new), (10, new), &hashes));
    for (wrong, status) in [
        ("consistency", 400),
        ("consistency?old=0", 400),
        ("consistency?old=4&new=3", 400),
        ("consistency?old=1&new=11", 404),
        ("inclusion", 400),
        ("inclusion?index=10", 404),
        ("inclusion?session_id=s1&seq=x", 400),
        ("inclusion?tenant_id=acme&session_id=s1&seq=99", 404),
        ("inclusion?index=18446744073709551615", 404),
    ] {
        assert_eq!(served.get(wrong).status, status, "{wrong}");
    }
}

#[test]
fn agents_get_proofs_of_their_own_events_by_session() {
    let scene = Scene::new(None);
    let mine = scene.token_for(Role::Agent, "a", Some("acme"), None);
    let other = scene.token_for(Role::Agent, "b", Some("acme"), None);
    let event = r#"{"session_id":"s1","event_type":"MEMORY_WRITE","payload":{"memory_key":"k"}}"#;
    assert_eq!(scene.post("/v1/events", &mine, event).status, 201);
    assert!(scene.engine.store().publish(None).is_ok());
    let path = "/v1/log/inclusion?session_id=s1&seq=0";
    assert_eq!(scene.get(path, &mine).status, 200);
    assert_eq!(scene.get(path, &other).status, 404);
    assert_eq!(scene.get("/v1/log/checkpoint", &other).status, 200);
}
