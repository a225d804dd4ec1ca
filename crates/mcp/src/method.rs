//! Every method of the protocol, and what becomes of a message that names it.
//!
//! Names are compared letter by letter: what is not in the table is not a method that anybody here
//! has thought about.

use std::fmt;

macro_rules! methods {
    ($( $name:ident = $text:literal, $client:ident, $server:ident; )*) => {
        /// A method, as its name says it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names on the wire are the documentation")]
        pub enum Method {
            $( $name, )*
            /// A notification that the table does not name.
            OtherNotification,
            /// Anything else.
            Unknown,
        }

        impl Method {
            /// The methods with names.
            pub const ALL: &'static [Self] = &[ $( Self::$name ),* ];

            /// The method of this name.
            pub fn of(name: &str) -> Self {
                match name {
                    $( $text => Self::$name, )*
                    other if is_notification(other) => Self::OtherNotification,
                    _ => Self::Unknown,
                }
            }

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => $text, )*
                    Self::OtherNotification => "notifications/…",
                    Self::Unknown => "an unknown method",
                }
            }

            /// What becomes of it when a client sends it.
            pub const fn from_client(self) -> Route {
                match self {
                    $( Self::$name => Route::$client, )*
                    Self::OtherNotification => Route::Notify,
                    Self::Unknown => Route::Unknown,
                }
            }

            /// What becomes of it when a server sends it.
            pub const fn from_server(self) -> Route {
                match self {
                    $( Self::$name => Route::$server, )*
                    Self::OtherNotification => Route::Notify,
                    Self::Unknown => Route::Unknown,
                }
            }
        }
    };
}

impl Method {
    /// Methods that fetch something which is named by whoever asks. They are calls of a tool that has the
    /// name of the method, and only read.
    pub const READS: [Self; 2] = [Self::ResourcesRead, Self::PromptsGet];

    /// Whether the engine decides about it, when a client sends it.
    pub fn is_decided(self) -> bool {
        self.from_client() == Route::Call
    }

    /// Whether it only fetches what is named.
    pub fn reads(self) -> bool {
        Self::READS.contains(&self)
    }
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A tool is called, or something is fetched: the engine decides.
    Call,
    /// Tools are listed: the answer is looked at.
    List,
    /// A task is asked about: the answer is recorded and taints the session.
    Task,
    /// The server asks the client's model.
    Sample,
    /// The server asks the client's human.
    Elicit,
    /// The peers introduce themselves: the answer says which era they speak.
    Open,
    /// A request that passes.
    Pass,
    /// A notification that passes; as a request it is unknown.
    Notify,
    /// A notification that ends a request.
    Cancel,
    /// Nobody sends this in this direction.
    Refuse,
    /// Not in the table.
    Unknown,
}

methods! {
    // name                                                            from client, from server
    Initialize = "initialize",                                          Open, Refuse;
    Discover = "server/discover",                                       Open, Refuse;
    Ping = "ping",                                                      Pass, Pass;
    ToolsCall = "tools/call",                                           Call, Refuse;
    ToolsList = "tools/list",                                           List, Refuse;
    ResourcesRead = "resources/read",                                   Call, Refuse;
    ResourcesList = "resources/list",                                   Pass, Refuse;
    ResourceTemplatesList = "resources/templates/list",                 Pass, Refuse;
    ResourcesSubscribe = "resources/subscribe",                         Pass, Refuse;
    ResourcesUnsubscribe = "resources/unsubscribe",                     Pass, Refuse;
    PromptsGet = "prompts/get",                                         Call, Refuse;
    PromptsList = "prompts/list",                                       Pass, Refuse;
    CompletionComplete = "completion/complete",                         Pass, Refuse;
    LoggingSetLevel = "logging/setLevel",                               Pass, Refuse;
    SubscriptionsListen = "subscriptions/listen",                       Pass, Refuse;
    // What a server says about a task is the output of a tool.
    TasksGet = "tasks/get",                                             Task, Pass;
    TasksResult = "tasks/result",                                       Task, Pass;
    TasksList = "tasks/list",                                           Pass, Pass;
    TasksUpdate = "tasks/update",                                       Task, Refuse;
    TasksCancel = "tasks/cancel",                                       Task, Pass;
    SamplingCreateMessage = "sampling/createMessage",                   Refuse, Sample;
    ElicitationCreate = "elicitation/create",                           Refuse, Elicit;
    RootsList = "roots/list",                                           Refuse, Pass;
    ToolsListChanged = "notifications/tools/list_changed",              Notify, Notify;
    Cancelled = "notifications/cancelled",                              Cancel, Cancel;
}

/// A plain name below `notifications/`.
fn is_notification(name: &str) -> bool {
    let is_plain = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        !part.is_empty() && part.bytes().all(plain)
    };
    name.strip_prefix("notifications/")
        .is_some_and(|rest| rest.split('/').all(is_plain))
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_letter_by_letter() {
        for method in Method::ALL {
            assert_eq!(Method::of(method.as_str()), *method);
        }
        for alias in [
            "",
            "Tools/Call",
            "tools/call ",
            " tools/call",
            "tools/call/",
            "/tools/call",
            "tools//call",
            "tools.call",
            "tools\\call",
            "tools/ca\u{200b}ll",
            "tооls/call",
            "callTool",
            "notification/x",
            "notifications/",
            "notifications/../tools/call",
            "notifications//x",
            "notifications/x\u{0}",
        ] {
            assert_eq!(Method::of(alias), Method::Unknown, "{alias:?}");
            assert_eq!(Method::of(alias).from_client(), Route::Unknown);
        }
        assert_eq!(
            Method::of("notifications/progress"),
            Method::OtherNotification
        );
    }

    #[test]
    fn what_reads_is_what_the_log_knows_as_that() {
        for method in Method::ALL {
            let fetches = countersign_event::fetching(method.as_str()).is_some();
            assert_eq!(method.reads(), fetches, "{method}");
        }
    }

    #[test]
    fn calls_are_the_call_and_what_reads() {
        let calls: Vec<_> = Method::ALL
            .iter()
            .filter(|method| method.from_client() == Route::Call)
            .collect();
        assert_eq!(
            calls,
            [
                &Method::ToolsCall,
                &Method::ResourcesRead,
                &Method::PromptsGet
            ]
        );
        assert!(
            Method::ALL
                .iter()
                .all(|method| method.from_server() != Route::Call)
        );
    }
}
