//! Signs where the audit will end, beside the commit that makes it end there.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use countersign_approval::SigningKey;
use countersign_approval::audit::{Head, SignedHead};

/// A thread that signs one head at a time. What it signed before a commit that failed is dropped.
pub(super) struct Signer {
    heads: SyncSender<Head>,
    signed: Receiver<SignedHead>,
    /// The head that is being signed.
    begun: Option<Head>,
}

impl Signer {
    pub(super) fn new(key: SigningKey) -> io::Result<Self> {
        let (heads, asked) = sync_channel::<Head>(1);
        let (answer, signed) = sync_channel(1);
        // It ends when its heads do.
        thread::Builder::new()
            .name("audit-signer".to_owned())
            .spawn(move || {
                for head in asked {
                    if answer.send(head.sign(&key)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            heads,
            signed,
            begun: None,
        })
    }

    /// Begins to sign.
    pub(super) fn begin(&mut self, head: Head) {
        self.drop_begun();
        self.begun = self.heads.send(head).is_ok().then_some(head);
    }

    /// The signed head, if it was this one that was begun.
    pub(super) fn take(&mut self, head: Head) -> Option<SignedHead> {
        let begun = self.begun.take()?;
        let signed = self.signed.recv().ok()?;
        (begun == head).then_some(signed)
    }

    fn drop_begun(&mut self) {
        if self.begun.take().is_some() {
            // Nobody wants it any more.
            let _ = self.signed.recv();
        }
    }
}
