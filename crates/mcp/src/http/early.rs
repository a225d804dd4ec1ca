//! Words to a client before the server has answered, or was asked at all: the response becomes a
//! stream, and what would have been the response is its end.

use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use tokio::sync::{mpsc, oneshot};

use crate::Id;

use super::body::Sent;
use super::exchange::{answered, is_message};
use super::loss::UNREADABLE;
use super::reply::Waiting;
use super::route::stream_of;
use super::sse;

/// Where a client hears what becomes of its request.
pub(super) struct Ear {
    waiting: Waiting,
    stream: Option<mpsc::Sender<Bytes>>,
}

impl Ear {
    pub(super) fn new(waiting: Waiting) -> Self {
        Self {
            waiting,
            stream: None,
        }
    }

    /// Says something that is not the answer to this request.
    pub(super) async fn say(&mut self, id: &Id, message: &[u8], time: Duration) {
        let stream = match &self.stream {
            Some(stream) => stream.clone(),
            None => self.open(id),
        };
        // A client that does not read is noticed when it has gone.
        let _ = tokio::time::timeout(time, stream.send(sse::event(message).into())).await;
    }

    /// The client has gone.
    pub(super) async fn closed(&mut self) {
        self.waiting.closed().await;
    }

    /// Where the response belongs.
    pub(super) fn into_waiting(self) -> Waiting {
        self.waiting
    }

    fn open(&mut self, id: &Id) -> mpsc::Sender<Bytes> {
        let (to_client, pieces) = mpsc::channel(PIECES);
        let (inner, response) = oneshot::channel();
        let outer = std::mem::replace(&mut self.waiting, inner);
        answered(outer, stream_of(pieces));
        tokio::spawn(relay(response, to_client.clone(), id.clone()));
        self.stream = Some(to_client.clone());
        to_client
    }
}

/// Puts the response at the end of the stream. When the client goes, whoever makes the response hears
/// it, because nobody takes it any more.
async fn relay(
    response: oneshot::Receiver<Response<Sent>>,
    to_client: mpsc::Sender<Bytes>,
    id: Id,
) {
    let response = tokio::select! {
        response = response => response,
        () = to_client.closed() => return,
    };
    let body = response.map(Response::into_body);
    let event = match body {
        Ok(Sent::Stream(pieces)) => return pass(pieces, &to_client).await,
        Ok(Sent::Whole(Some(bytes))) if is_message(&bytes) => sse::event(&bytes),
        // Words outside the protocol have no place in a stream.
        Ok(Sent::Whole(_)) | Err(_) => sse::event(&UNREADABLE.refused().to_error(Some(&id))),
    };
    // Who has gone hears nothing.
    let _ = to_client.send(event.into()).await;
}

/// Passes pieces on, until there are no more or the client is gone.
pub(super) async fn pass(mut pieces: mpsc::Receiver<Bytes>, to_client: &mpsc::Sender<Bytes>) {
    loop {
        let piece = tokio::select! {
            piece = pieces.recv() => piece,
            () = to_client.closed() => return,
        };
        let Some(piece) = piece else { return };
        if to_client.send(piece).await.is_err() {
            return;
        }
    }
}

const PIECES: usize = 8;
