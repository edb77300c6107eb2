// SPDX-License-Identifier: MIT
//! Writes files to standard output, each read in parts while the part before it is
//! written.
//!
//!     cargo run --example cat FILE...

use flexsc::{File, Loop};
use std::io;
use std::os::unix::io::AsFd;
use std::path::Path;

const PART: usize = 1 << 16;

async fn write_all(output: &File, mut data: Vec<u8>) -> io::Result<Vec<u8>> {
    // A pipe takes all; a file system that is full, or a terminal, may take a part.
    loop {
        let length = data.len();
        let (n, rest) = output.write(data).await;
        data = rest;
        let n = n?;
        if n == length {
            return Ok(data);
        }
        data.drain(..n);
    }
}

async fn cat(flexsc: &Loop, path: &Path, output: &File) -> io::Result<()> {
    let file = flexsc.open(path).await?;
    let (n, mut data) = file.read(Vec::with_capacity(PART)).await;
    n?;
    let mut spare = Vec::with_capacity(PART);
    while !data.is_empty() {
        // Posted before the write is awaited.
        let next = file.read(spare);
        spare = write_all(output, data).await?;
        let (n, read) = next.await;
        n?;
        data = read;
    }
    file.close().await
}

fn main() -> io::Result<()> {
    let flexsc = Loop::new()?;
    flexsc.block_on(async {
        let output = flexsc.adopt(io::stdout().as_fd().try_clone_to_owned()?);
        for path in std::env::args_os().skip(1) {
            let path = Path::new(&path);
            if let Err(error) = cat(&flexsc, path, &output).await {
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", path.display()),
                ));
            }
        }
        output.close().await
    })
}
