//! What systemd hands over, and what it wants to hear.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

/// The socket that systemd has opened for us, if it has.
pub(super) fn listener() -> Option<TcpListener> {
    let mut handed = listenfd::ListenFd::from_env();
    handed.take_tcp_listener(0).ok().flatten()
}

/// Tells systemd that callers are answered. Nobody listens where there is no systemd.
pub(super) fn ready() {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let said = UnixDatagram::unbound().and_then(|socket| {
        let bytes = path.as_encoded_bytes();
        match bytes.strip_prefix(b"@") {
            #[cfg(target_os = "linux")]
            Some(name) => {
                use std::os::linux::net::SocketAddrExt as _;
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                socket.send_to_addr(b"READY=1", &address)
            }
            _ => socket.send_to(b"READY=1", &path),
        }
    });
    // It will find out by itself that we are there.
    drop(said);
}
