//! A server that does not answer, or not as it should.

use hyper::StatusCode;

use crate::reply::Refused;
use crate::session::{Instead, Unanswered};

use super::exchange::{Exchange, answered};
use super::reply::{self, Waiting};

/// Why a server's answer is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loss {
    /// For the log.
    pub(super) code: &'static str,
    reason: &'static str,
    text: &'static str,
}

impl Loss {
    pub(super) fn refused(self) -> Refused {
        Refused::denied(self.reason, self.text)
    }
}

impl Exchange {
    /// The server has not answered; gives what the client hears, if it waits.
    pub(super) async fn lose(&self, code: &str, refused: Refused) -> Option<Vec<u8>> {
        let id = self.id.as_ref()?;
        let effects =
            self.link
                .session()
                .unanswered(id, &Unanswered::lost(code), Instead::Error(refused));
        let came = self.link.drive(effects, Some(id)).await;
        self.sort(came).1
    }

    /// The server failed before anything was sent to the client.
    pub(super) async fn fail(self: Box<Self>, loss: Loss, waiting: Waiting) {
        let answer = self.lose(loss.code, loss.refused()).await;
        let response = match answer {
            // The error is the answer to the request: the exchange itself went well.
            Some(answer) => reply::message(StatusCode::OK, answer),
            None => reply::error(StatusCode::BAD_GATEWAY, &loss.refused(), self.id.as_ref()),
        };
        answered(waiting, response);
    }
}

pub(super) const SERVER_GONE: Loss = Loss {
    code: "server_gone",
    reason: "SERVER_GONE",
    text: "the server cannot be reached; tell the operator, do not retry",
};
pub(super) const TIMEOUT: Loss = Loss {
    code: "timeout",
    reason: "TIMEOUT",
    text: "the server took too long; whether it did anything is not known: find out before you ask again, or \
           tell the operator",
};
pub(super) const UNREADABLE: Loss = Loss {
    code: "server_frame_refused",
    reason: "SERVER_FRAME_REFUSED",
    text: "the server's answer was refused: it is not a message that can be read; tell the operator, do not retry",
};
pub(super) const REDIRECTED: Loss = Loss {
    code: "server_redirects",
    reason: "SERVER_REDIRECTS",
    text: "the server sends clients elsewhere; tell the operator to give its new address, do not retry",
};
/// Others were faster to take the last place.
pub(super) const FULL: Loss = Loss {
    code: "too_many_sessions",
    reason: "TOO_MANY_SESSIONS",
    text: "refused: too many sessions; try again later",
};
pub(super) const BROKEN_OFF: Loss = Loss {
    code: "server_gone",
    reason: "SERVER_GONE",
    text: "the server broke off before it answered; whether it did anything is not known: find out before you ask \
           again, or tell the operator",
};
