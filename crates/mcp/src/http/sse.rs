//! Server-sent events: cuts a stream into events as they come, and keeps their bytes.

use countersign_web::{Room, Share};

use crate::kept::{BEGINNING, Cut, Kept};

/// Something that was cut out of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// One event.
    Event(Event),
    /// An event over the limit: what is left of its data.
    TooLong(Cut),
    /// An event for which there was no room: what is left of its data.
    NoRoom(Cut),
}

/// One event, up to and with the blank line that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The bytes that came.
    pub(super) raw: Vec<u8>,
    /// The message in it; `None` for comments, positions and the like.
    pub(super) data: Option<Vec<u8>>,
    /// Where a stream can be taken up again.
    pub(super) id: Option<Vec<u8>>,
    /// Whether it says that it is something else than a message.
    pub(super) is_named: bool,
    /// Whether it says where the client is to send its messages.
    pub(super) is_endpoint: bool,
    /// Whether a reader that also ends lines elsewhere would find something else in it.
    pub(super) is_odd: bool,
}

/// Cuts events.
pub(super) struct Events {
    kept: Kept,
    /// Of the room for events that have not ended.
    share: Share,
    had_no_room: bool,
    /// How long the line is that has not ended.
    line: usize,
    /// A line feed that comes next belongs to the line end before it.
    after_return: bool,
}

impl Events {
    /// Events of at most this many bytes, in the room that there is for them.
    pub(super) fn new(max_bytes: usize, room: &Room) -> Self {
        Self {
            kept: Kept::new(max_bytes),
            share: room.share(),
            had_no_room: false,
            line: 0,
            after_return: false,
        }
    }

    /// Takes the next bytes of the stream and gives each event that ends in them. What has not ended
    /// when the stream does is no event.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Item)) {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = self.hold(bytes, 1);
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.line += bytes.len();
                self.hold(bytes, bytes.len());
                return;
            };
            let is_blank = self.line + end == 0;
            self.line = 0;
            self.after_return = bytes.get(end) == Some(&b'\r');
            bytes = self.hold(bytes, end + 1);
            if self.after_return && bytes.first() == Some(&b'\n') {
                self.after_return = false;
                bytes = self.hold(bytes, 1);
            }
            if is_blank {
                each(self.take());
            }
        }
    }

    /// Keeps the first `count` bytes, and gives the others.
    fn hold<'a>(&mut self, bytes: &'a [u8], count: usize) -> &'a [u8] {
        let (taken, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
        let length = self.kept.len().map(|length| length + taken.len());
        match length.is_none_or(|length| length <= BEGINNING || self.share.cover(length)) {
            true => self.kept.push(taken),
            false => {
                self.kept.cut(taken);
                self.had_no_room = true;
            }
        }
        rest
    }

    /// The events that were given are on their way.
    pub(super) fn passed_on(&mut self) {
        let length = self.kept.len().filter(|length| *length > BEGINNING);
        self.share.shrink(length.unwrap_or_default());
    }

    fn take(&mut self) -> Item {
        match self.kept.take() {
            Ok(raw) => {
                let fields = Fields::read(&raw);
                Item::Event(Event {
                    is_odd: fields.is_odd(),
                    data: fields.data.filter(|data| !data.is_empty()),
                    id: fields.id,
                    is_named: fields.is_named,
                    is_endpoint: fields.is_endpoint,
                    raw,
                })
            }
            Err(cut) => {
                let cut = Cut {
                    beginning: Fields::read(&cut.beginning).data.unwrap_or_default(),
                    ..cut
                };
                match std::mem::take(&mut self.had_no_room) {
                    true => Item::NoRoom(cut),
                    false => Item::TooLong(cut),
                }
            }
        }
    }
}

impl Event {
    /// What every reader finds in it: its message.
    pub(super) fn without_oddities(self) -> Self {
        let is_message = self.data.as_deref().is_some_and(is_json);
        let data = self.data.filter(|_| is_message);
        Self {
            raw: data.as_deref().map(event).unwrap_or_default(),
            data,
            id: None,
            is_named: false,
            is_endpoint: false,
            is_odd: false,
        }
    }

    /// The same event, from which no stream can be taken up again.
    pub(super) fn without_position(self) -> Self {
        let Some(_) = &self.id else { return self };
        let data = self.data.as_deref().filter(|_| !self.is_named);
        Self {
            raw: data.map(event).unwrap_or_default(),
            id: None,
            ..self
        }
    }

    /// The same event with another message.
    pub(super) fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some(id) = &self.id {
            text.extend_from_slice(b"id: ");
            text.extend_from_slice(id);
            text.push(b'\n');
        }
        text.extend(event(data));
        text
    }
}

/// An event of our own making.
pub(super) fn event(message: &[u8]) -> Vec<u8> {
    let mut text = b"event: message\n".to_vec();
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.push(b'\n');
    text
}

#[derive(Default)]
struct Fields {
    data: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    is_named: bool,
    is_endpoint: bool,
    /// Whether a line that is no data ends elsewhere too, for some readers.
    is_odd: bool,
}

impl Fields {
    /// SECURITY: in the text of a message such characters end nothing: whatever looks like a line there has
    /// its quotes escaped, and is no message.
    fn is_odd(&self) -> bool {
        let text = self.data.as_deref().filter(|data| !is_json(data));
        self.is_odd || text.is_some_and(ends_elsewhere)
    }

    fn read(raw: &[u8]) -> Self {
        let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
        let mut fields = Self::default();
        for line in raw.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let (name, value) = match memchr::memchr(b':', line) {
                Some(at) => line.split_at(at),
                None => (line, &b""[..]),
            };
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            fields.is_odd |= name != b"data" && ends_elsewhere(line);
            match name {
                b"data" => match &mut fields.data {
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(value);
                    }
                    None => fields.data = Some(value.to_vec()),
                },
                b"id" => fields.id = Some(value.to_vec()),
                b"event" => {
                    fields.is_named = !matches!(value, b"" | b"message");
                    fields.is_endpoint = value == b"endpoint";
                }
                _ => {}
            }
        }
        fields
    }
}

/// Whether this can only be a message.
pub(super) fn is_json(data: &[u8]) -> bool {
    matches!(data.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Whether a reader that ends lines wherever Unicode does sees several lines in one.
fn ends_elsewhere(line: &[u8]) -> bool {
    let is_end = |at: usize| {
        let rest = line.get(at..).unwrap_or_default();
        matches!(
            rest,
            [0x0b | 0x0c | 0x1c..=0x1e, ..] | [0xc2, 0x85, ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..]
        )
    };
    (0..line.len()).any(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(max_bytes: usize, chunks: &[&[u8]]) -> Vec<Item> {
        let mut events = Events::new(max_bytes, &Room::new(1 << 20));
        let mut found = Vec::new();
        for chunk in chunks {
            events.feed(chunk, |item| found.push(item));
        }
        found
    }

    fn data(items: &[Item]) -> Vec<Option<String>> {
        let text = |event: &Event| {
            let data = event.data.clone();
            data.map(|data| String::from_utf8(data).unwrap())
        };
        let one = |item: &Item| match item {
            Item::Event(event) => text(event),
            Item::TooLong(_) | Item::NoRoom(_) => panic!("too long"),
        };
        items.iter().map(one).collect()
    }

    fn raw(items: &[Item]) -> Vec<u8> {
        let one = |item: &Item| match item {
            Item::Event(event) => event.raw.clone(),
            Item::TooLong(_) | Item::NoRoom(_) => panic!("too long"),
        };
        items.iter().flat_map(one).collect()
    }

    #[test]
    fn events_are_cut_wherever_the_chunks_end_and_no_byte_is_lost() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = [
                ": hello",
                "",
                "id: 1",
                "data:",
                "",
                "event: message",
                "data: {\"a\":",
                "data:1}",
                "id: 2",
                "",
                "retry: 10",
                "",
                "data",
                "",
            ];
            let stream = format!("{}{end}", stream.join(end));
            let expect = [None, None, Some("{\"a\":\n1}".to_owned()), None, None];
            for size in 1..=stream.len() {
                let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
                let items = cut(1000, &chunks);
                assert_eq!(data(&items), expect, "{end:?} {size}");
                // A line feed that came after its event is given with the next one.
                let given = raw(&items);
                assert!(stream.as_bytes().starts_with(&given));
                assert!(
                    stream.len() - given.len() <= usize::from(end == "\r\n"),
                    "{size}"
                );
            }
        }
    }

    #[test]
    fn an_event_is_there_as_soon_as_it_ends() {
        for stream in ["data: 1\n\n", "data: 1\r\n\r\n", "data: 1\r\r"] {
            assert_eq!(cut(1000, &[stream.as_bytes()]).len(), 1, "{stream:?}");
        }
        assert_eq!(cut(1000, &[b"data: 1\r\n\r"]).len(), 1);
        assert_eq!(cut(1000, &[b"data: 1\n", b"data: 2"]), []);
    }

    #[test]
    fn positions_and_names_are_told() {
        let items = cut(
            1000,
            &[b"id: a b\nevent: ping\ndata: x\n\nevent: message\n\n"],
        );
        let [Item::Event(first), Item::Event(second)] = &items[..] else {
            panic!("{items:?}");
        };
        assert_eq!(first.id.as_deref(), Some(&b"a b"[..]));
        assert!(first.is_named && !second.is_named);
        let bare = first.clone().without_position();
        assert_eq!((bare.id, bare.raw), (None, Vec::new()));
        let [Item::Event(message)] = &cut(1000, &[b"data: {}\nid: 7\n\n"])[..] else {
            panic!("one event");
        };
        let bare = message.clone().without_position();
        assert_eq!(bare.raw, b"event: message\ndata: {}\n\n");
        let changed = String::from_utf8(first.with_data(b"{}")).unwrap();
        assert_eq!(changed, "id: a b\nevent: message\ndata: {}\n\n");
    }

    #[test]
    fn lines_that_end_elsewhere_for_some_readers_are_told() {
        let hidden = "data: {\"jsonrpc\":\"2.0\"}";
        for end in ["\u{b}", "\u{c}", "\u{1c}", "\u{85}", "\u{2028}", "\u{2029}"] {
            for (before, message) in [
                (": x", false),
                ("id: 1", false),
                ("event: other\ndata: x", false),
                ("data: {}\n: x", true),
            ] {
                let stream = format!("{before}{end}{hidden}\n\n");
                let [Item::Event(event)] = &cut(1000, &[stream.as_bytes()])[..] else {
                    panic!("one event");
                };
                assert!(event.is_odd, "{stream:?}");
                let left = event.clone().without_oddities().raw;
                let expect: &[u8] = match message {
                    true => b"event: message\ndata: {}\n\n",
                    false => b"",
                };
                assert_eq!(left, expect, "{stream:?}");
            }
            let text = format!("data: {{\"a\":\"x{end}y\"}}\n\n");
            let [Item::Event(event)] = &cut(1000, &[text.as_bytes()])[..] else {
                panic!("one event");
            };
            assert!(!event.is_odd, "{text:?}");
        }
    }

    #[test]
    fn a_long_event_is_let_go_and_the_next_one_is_read() {
        let mut stream = b"data: {\"id\":7,".to_vec();
        stream.extend(vec![b'x'; 100_000]);
        stream.extend(b"yz\n\ndata: next\n\n");
        for size in [1, 7, 4096, stream.len()] {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let items = cut(1000, &chunks);
            let [Item::TooLong(Cut { beginning, end }), Item::Event(next)] = &items[..] else {
                panic!("{}", items.len());
            };
            assert!(beginning.starts_with(b"{\"id\":7,x") && end.ends_with(b"xyz\n\n"));
            assert_eq!(next.data.as_deref(), Some(&b"next"[..]));
        }
    }

    #[test]
    fn events_that_go_on_share_the_room() {
        let room = Room::new(16 << 10);
        let [mut one, mut other] = [&room, &room].map(|room| Events::new(64 << 10, room));
        let begin = |events: &mut Events| {
            let unfinished = [b"data: {\"id\":7", &[b'x'; 10 << 10][..]].concat();
            events.feed(&unfinished, |_| panic!("it goes on"));
        };
        let finish = |events: &mut Events| {
            let mut found = Vec::new();
            events.feed(b"yz\n\n", |item| found.push(item));
            found.pop().unwrap()
        };
        begin(&mut one);
        begin(&mut other);
        // There was no room for the second; it is known by its ends.
        let Item::NoRoom(Cut { beginning, end }) = finish(&mut other) else {
            panic!("there was room");
        };
        assert!(beginning.starts_with(b"{\"id\":7x") && end.ends_with(b"xyz\n\n"));
        // What is small needs no room.
        assert!(matches!(finish(&mut other), Item::Event(_)));
        // Room is free when an event is on its way, whatever has begun since.
        assert!(matches!(finish(&mut one), Item::Event(_)));
        one.feed(b"data: next", |_| {});
        one.passed_on();
        begin(&mut other);
        assert!(matches!(finish(&mut other), Item::Event(_)));
    }
}
