// SPDX-License-Identifier: MIT
//! A TCP server on the loopback interface, which sends back what it receives. It prints
//! its address.
//!
//!     cargo run --example echo [PORT]

use flexsc::{File, Handle, Loop};
use std::io;
use std::net::TcpListener;

async fn echo(connection: File) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(1 << 16);
    loop {
        let (n, data) = connection.recv(buffer, 0).await;
        if n? == 0 {
            return connection.close().await;
        }
        let (n, data) = connection.send(data, 0).await;
        n?;
        buffer = data;
    }
}

async fn serve(flexsc: Handle, listener: File) -> io::Result<()> {
    loop {
        let (connection, from) = listener.accept().await?;
        // The task continues without its handle.
        drop(flexsc.spawn(async move {
            if let Err(error) = echo(connection).await {
                eprintln!("echo: {from:?}: {error}");
            }
        }));
    }
}

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "0".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("{}", listener.local_addr()?);
    let flexsc = Loop::new()?;
    let listener = flexsc.adopt(listener);
    flexsc.block_on(serve((*flexsc).clone(), listener))
}
