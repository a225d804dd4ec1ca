//! What a policy warns of that lets a result pass.

use crate::wrapped::{INITIALIZE, Place};
use crate::{lay_out, replays, say};

#[test]
fn what_is_warned_of_when_a_result_is_looked_at_goes_along_with_it() {
    let place = Place::new();
    let acs = lay_out(place.folder.path());
    let mut client = place.guarded(&["--acs", &acs]);
    client.ask(INITIALIZE);
    let plain = say(&mut client, 1, "echo", "hello");
    assert!(!plain.contains("countersign/warning"), "{plain}");
    let warned = say(&mut client, 2, "echo", "hot");
    assert!(
        warned.contains(r#""countersign/warning":"be careful""#) && warned.contains("done"),
        "{warned}"
    );
    // Who warned before the call is not forgotten.
    let warned = say(&mut client, 3, "echo", "hotter");
    let both = r#""countersign/warning":"it is warm\nbe careful""#;
    assert!(warned.contains(both), "{warned}");
    assert!(say(&mut client, 4, "echo", "later hot").contains("taskId"));
    let late = r#"{"jsonrpc":"2.0","id":"q","method":"tasks/result","params":{"taskId":"t4"}}"#;
    let late = client.ask(late);
    assert!(
        late.contains(r#""countersign/warning":"be careful""#) && late.contains("done"),
        "{late}"
    );
    client.end();
    place.verify();
    replays(&place.path("data"));
}
