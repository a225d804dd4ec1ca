//! A server that is wrong in exactly one way: it stands before a real one and spoils one behaviour.
//!
//! `broken_server FAULT http://ADDRESS SCRATCH` prints the address where it listens. The conformance
//! packs are run against it to see that they notice. `SCRATCH` is the folder of the server behind, for
//! faults of what is kept there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "it is part of the tests, which may stop at once"
)]

mod fault;
mod http;
mod mcp;
mod stored;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fault::Broken;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("FAULT http://ADDRESS SCRATCH");
    let (fault, base, scratch) = (next(), next(), PathBuf::from(next()));
    let behind = base.trim_start_matches("http://").to_owned();
    let broken = Arc::new(Mutex::new(Broken::new(&fault, &behind, scratch)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    for stream in listener.incoming() {
        let (broken, behind) = (Arc::clone(&broken), behind.clone());
        std::thread::spawn(move || {
            let mut stream = stream.unwrap();
            let Some(mut request) = http::read_request(&mut stream) else {
                return;
            };
            let answered = broken.lock().unwrap().before(&mut request);
            let mut answer = match answered {
                Some(answer) => answer,
                None => http::forward(&request, &behind),
            };
            broken.lock().unwrap().after(&request, &mut answer);
            http::write_answer(&mut stream, &answer);
        });
    }
}
