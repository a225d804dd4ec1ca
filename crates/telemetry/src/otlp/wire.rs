//! The encoding of protocol buffers, as far as spans need it.

/// A message that grows.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// A number that is left away when it is zero, as the encoding has it.
    pub(super) fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.chosen(field, value);
        }
    }

    /// A number of which it matters that it is there.
    pub(super) fn chosen(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.put(value);
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn fixed32(&mut self, field: u32, value: u32) {
        self.tag(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.put(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(super) fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn tag(&mut self, field: u32, kind: u8) {
        self.put(u64::from(field) << 3 | u64::from(kind));
    }

    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The low seven bits, and that there is more.
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
