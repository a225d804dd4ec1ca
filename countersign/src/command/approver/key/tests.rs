use countersign_engine::{Desk, SystemClock};
use countersign_store::{Folder, Options, Store};

use super::super::rotate::register;
use super::*;

struct Scene {
    folder: tempfile::TempDir,
    file: KeyFile,
    desk: Desk,
}

impl Scene {
    /// One approver with a registered key.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = Folder::new(folder.path().join("data"));
        let store = Store::open(&data, Options::default()).unwrap();
        let option = KeyOption {
            key: Some(folder.path().join("config/approver.key")),
        };
        let scene = Self {
            file: option.file(data.path()).unwrap(),
            desk: Desk::new(store, SystemClock).unwrap(),
            folder,
        };
        let key = scene.file.open_or_create().unwrap();
        let person = Human::new("dana").unwrap();
        let added = scene
            .desk
            .change_approvers(None, |list| list.add(person, &key.verifying_key()));
        added.unwrap();
        scene
    }

    fn open(&self) -> Result<KeyId, Failure> {
        let approvers = self.desk.approvers().unwrap();
        self.file.open(&approvers).map(|key| key.id)
    }

    fn old(&self) -> ApproverKey {
        self.file.open(&self.desk.approvers().unwrap()).unwrap()
    }

    /// How many of the keys on disk could decide.
    fn usable(&self) -> usize {
        let approvers = self.desk.approvers().unwrap();
        let files = [self.file.path.clone(), self.file.next_path()];
        let keys = files.iter().filter_map(|path| open_secret(path).ok());
        keys.filter(|key| is_active(&SigningKey::from_bytes(key), &approvers))
            .count()
    }
}

#[test]
fn k05_a_rotation_that_stops_after_any_step_leaves_one_usable_key() {
    // Stopped after: nothing, the new file, the change of the list, the new file in its place.
    for steps in 0..=3 {
        let scene = Scene::new();
        let old = scene.old();
        let mut expected = old.id;
        if steps >= 1 {
            let new = scene.file.prepare().unwrap();
            if steps >= 2 {
                expected = register(&scene.desk, &old, &new).unwrap();
            }
        }
        if steps >= 3 {
            scene.file.install().unwrap();
        }
        assert_eq!(scene.usable(), 1, "after step {steps}");
        assert_eq!(scene.open().unwrap(), expected, "after step {steps}");
        assert_eq!(scene.usable(), 1, "opened after step {steps}");

        // And the next rotation works, whatever the last one left behind.
        let old = scene.old();
        let new = scene.file.prepare().unwrap();
        let id = register(&scene.desk, &old, &new).unwrap();
        scene.file.install().unwrap();
        assert_eq!(scene.open().unwrap(), id);
        assert!(!scene.file.next_path().exists());
    }
}

#[test]
fn k06_a_key_that_was_ended_or_never_registered_does_not_open() {
    let scene = Scene::new();
    let id = scene.open().unwrap();
    let end = |list: &mut Approvers| list.end(id, KeyStatus::Revoked);
    scene.desk.change_approvers(None, end).unwrap();
    assert!(
        scene
            .open()
            .err()
            .unwrap()
            .message()
            .ends_with("is revoked")
    );
    let other = KeyFile {
        path: scene.folder.path().join("other.key"),
    };
    other.open_or_create().unwrap();
    let refused = other.open(&scene.desk.approvers().unwrap()).err().unwrap();
    assert!(refused.message().ends_with("is not registered"));
}

#[test]
fn a_key_in_the_data_folder_is_refused_also_through_a_link() {
    let scene = Scene::new();
    let data = scene.folder.path().join("data");
    let link = scene.folder.path().join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&data, &link).unwrap();
    for path in [data.join("k"), data.join("new/k"), link.join("k")] {
        let option = KeyOption { key: Some(path) };
        assert!(option.file(&data).is_err());
    }
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&scene.file.path), 0o600);
    assert_eq!(mode(&parent(&scene.file.path)), 0o700);
    fs::set_permissions(&scene.file.path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(scene.open().is_err());
}
