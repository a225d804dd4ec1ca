//! Notes, keys, checkpoints and proof files.

use countersign_canon::Hash;
use countersign_tlog::{
    Checkpoint, CheckpointError, Counted, Durability, Key, KeyError, Kind, Note, NoteError,
    ProofFile, ProofFileError, Refused, Signer, Statement, hash, session_entry,
};

const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const NOTE: &str = "If you think cryptography is the answer to your problem,\n\
    then you don't know what your problem is.\n\
    \n\
    — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

/// The example of the package that the format comes from.
#[test]
fn a_note_that_others_signed_is_accepted() {
    let key: Key = PETER.parse().unwrap();
    let note = Note::read(NOTE.as_bytes()).unwrap();
    assert_eq!(note.verify(&key), Ok(None));
    assert_eq!(note.to_string(), NOTE);
    assert_eq!(key.to_string(), PETER);
    let changed = NOTE.replace("your problem is", "the problem is");
    let changed = Note::read(changed.as_bytes()).unwrap();
    assert_eq!(
        changed.verify(&key),
        Err(Refused::Wrong("PeterNeumann".to_owned()))
    );
}

#[test]
fn every_flipped_bit_of_a_signed_note_is_found() {
    let signer = Signer::new("example.com/log", &[7; 32]).unwrap();
    let (key, text) = (signer.key(Kind::Note), signed(&signer));
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1 << bit;
            let verified = Note::read(&changed).is_ok_and(|note| note.verify(&key).is_ok());
            assert!(!verified, "bit {bit} of byte {at}");
        }
    }
}

fn signed(signer: &Signer) -> String {
    let mut note = checkpoint().to_note().unwrap();
    note.add(signer.sign(&note));
    note.to_string()
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        origin: "example.com/log".to_owned(),
        size: 70_000,
        root: hash::leaf(b"root"),
        extensions: vec!["durability full".to_owned()],
    }
}

#[test]
fn malformed_notes_are_refused() {
    let check = |text: &[u8], expected| assert_eq!(Note::read(text), Err(expected));
    check(b"text\n", NoteError::NoSignatures);
    check(b"text\n\n", NoteError::NoSignatures);
    check(b"text\n\nno signature\n", NoteError::Line(1));
    check("text\n\n— a AAAAAAA=".as_bytes(), NoteError::NoSignatures);
    check("text\n\n— a AAAAAA==\n".as_bytes(), NoteError::Line(1));
    check("text\n\n— a+b AAAAAAA=\n".as_bytes(), NoteError::Line(1));
    check("text\n\n— a b AAAAAAA=\n".as_bytes(), NoteError::Line(1));
    check("te\txt\n\n— a AAAAAAA=\n".as_bytes(), NoteError::NotText);
    check(b"\xff\n\n", NoteError::NotText);
    check(&vec![b'a'; (1 << 20) + 1], NoteError::TooLong);
    let many = format!("text\n\n{}", "— a AAAAAAA=\n".repeat(129));
    check(many.as_bytes(), NoteError::TooMany);
}

#[test]
fn a_second_wrong_signature_by_a_known_key_is_not_overlooked() {
    let signer = Signer::new("log", &[7; 32]).unwrap();
    let text = signed(&signer);
    let line = text.lines().last().unwrap();
    let other = Signer::new("log", &[8; 32]).unwrap();
    let wrong = {
        let mut signature = signer.sign(&Note::new("other\n".to_owned()).unwrap());
        signature.name = "log".to_owned();
        signature.to_string()
    };
    let both = text.replace(line, &format!("{line}\n{wrong}"));
    let note = Note::read(both.as_bytes()).unwrap();
    assert_eq!(
        note.verify(&signer.key(Kind::Note)),
        Err(Refused::Wrong("log".to_owned()))
    );
    assert_eq!(note.verify(&other.key(Kind::Note)), Err(Refused::Unsigned));
}

#[test]
fn witnesses_sign_a_time_and_the_text() {
    let log = Signer::new("example.com/log", &[7; 32]).unwrap();
    let witness = Signer::new("witness.example/w1", &[9; 32]).unwrap();
    let mut note = Note::read(signed(&log).as_bytes()).unwrap();
    note.add(witness.cosign(&note, 1_679_315_147));
    let note = Note::read(note.to_string().as_bytes()).unwrap();
    let key = witness.key(Kind::Cosignature);
    assert_eq!(note.verify(&key), Ok(Some(1_679_315_147)));
    assert_eq!(note.verify(&log.key(Kind::Note)), Ok(None));
    // The same key as one that signs notes is another key.
    assert_eq!(
        note.verify(&witness.key(Kind::Note)),
        Err(Refused::Unsigned)
    );
    let again: Key = key.to_string().parse().unwrap();
    assert_eq!(again, key);
    let mut late = Note::read(signed(&log).as_bytes()).unwrap();
    late.add(witness.cosign(&late, u64::MAX));
    assert_eq!(
        late.verify(&key),
        Err(Refused::Wrong("witness.example/w1".to_owned()))
    );
}

#[test]
fn keys_are_refused_for_a_reason() {
    let weak = {
        let mut bytes = [0; 32];
        bytes[0] = 1;
        bytes
    };
    assert_eq!(Key::new("a", Kind::Note, &weak), Err(KeyError::Bytes));
    for name in ["", "a b", "a+b", "a\nb"] {
        assert!(matches!(
            Key::new(name, Kind::Note, &[9; 32]),
            Err(KeyError::Name(_))
        ));
    }
    assert_eq!("a+b".parse::<Key>(), Err(KeyError::Form));
    let other_hint = PETER.replace("c74f20a3", "c74f20a4");
    assert!(matches!(
        other_hint.parse::<Key>(),
        Err(KeyError::Hint { .. })
    ));
    let other_type = PETER.replace("+ARpc", "+Zxpc");
    assert_eq!(other_type.parse::<Key>(), Err(KeyError::Unknown(0x67)));
}

#[test]
fn checkpoints_have_one_text() {
    let checkpoint = checkpoint();
    let note = checkpoint.to_note().unwrap();
    assert_eq!(Checkpoint::read(note.text()), Ok(checkpoint.clone()));
    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    let read = |text: String| Checkpoint::read(&text).map(|read| read.size);
    assert_eq!(read(format!("o\n20852163\n{root}\n")), Ok(20_852_163));
    assert_eq!(read(format!("o\n0\n{root}\next\n")), Ok(0));
    assert_eq!(read(format!("\n1\n{root}\n")), Err(CheckpointError::Origin));
    assert_eq!(read(format!("o\n01\n{root}\n")), Err(CheckpointError::Size));
    assert_eq!(read(format!("o\n+1\n{root}\n")), Err(CheckpointError::Size));
    assert_eq!(read("o\n1\nAAAA\n".to_owned()), Err(CheckpointError::Root));
    assert_eq!(
        read(format!("o\n1\n{root}\n\n")),
        Err(CheckpointError::Extension)
    );
    assert_eq!(
        read(format!("o\n1\n{root}")),
        Err(CheckpointError::Extension)
    );
    let split = Checkpoint {
        origin: "two\nlines".to_owned(),
        ..checkpoint
    };
    assert_eq!(split.to_note(), None);
}

#[test]
fn a_statement_is_read_whole_or_not_at_all() {
    let statement = Statement {
        durability: Durability::Full,
        sessions: Counted {
            count: 3,
            hash: hash::leaf(b"s"),
        },
        audit: Counted {
            count: 0,
            hash: hash::leaf(b"a"),
        },
    };
    let with = |extensions: Vec<String>| Checkpoint {
        extensions,
        ..checkpoint()
    };
    let lines = statement.to_lines();
    assert_eq!(Statement::of(&with(lines.clone())), Some(statement));
    assert_eq!(Statement::of(&with(lines[..2].to_vec())), None);
    let twice = lines.iter().chain(&lines[..1]).cloned().collect();
    assert_eq!(Statement::of(&with(twice)), None);
    let mut odd = lines;
    odd[0] = "durability perhaps".to_owned();
    assert_eq!(Statement::of(&with(odd)), None);
}

#[test]
fn the_entry_of_a_session_is_canonical() {
    let entry = session_entry("t", "a \"b\"\n", 3, &Hash::of(b""));
    let text = r#"{"count":3,"head":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","session_id":"a \"b\"\n","tenant_id":"t"}"#;
    assert_eq!(String::from_utf8(entry).unwrap(), text);
}

#[test]
fn proof_files_read_back_and_prove_one_leaf() {
    let signer = Signer::new("example.com/log", &[7; 32]).unwrap();
    let leaves = crate::tree::leaves(5);
    let checkpoint = Checkpoint {
        size: 5,
        root: crate::tree::naive(&leaves),
        ..checkpoint()
    };
    let mut note = checkpoint.to_note().unwrap();
    note.add(signer.sign(&note));
    let path = countersign_tlog::inclusion::prove(3, 5, crate::tree::nodes(&leaves)).unwrap();
    for extra in [None, Some(b"event".to_vec())] {
        let file = ProofFile {
            extra,
            index: 3,
            path: path.clone(),
            note: note.clone(),
        };
        let text = file.to_string();
        let read = ProofFile::read(text.as_bytes()).unwrap();
        assert_eq!(read, file);
        assert_eq!(read.checkpoint_for(leaves[3]), Ok(checkpoint.clone()));
        assert_eq!(read.checkpoint_for(leaves[2]), Err(ProofFileError::Path));
        let moved = text.replace("index 3", "index 2");
        let moved = ProofFile::read(moved.as_bytes()).unwrap();
        assert_eq!(moved.checkpoint_for(leaves[3]), Err(ProofFileError::Path));
        for bad in [
            text.replace("index 3", "index 03"),
            text.replace("@v1", "@v2"),
            text.replacen("=\n", "\n", 1),
        ] {
            assert!(ProofFile::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
