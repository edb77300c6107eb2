// SPDX-License-Identifier: MIT
//! The processor time of a call: 16 bytes of a cached file by `pread`, or of a pipe by
//! `read` (with the `write` that fills it), by so many tasks at a time.
//!
//!     cargo run --release --example measure [ENGINE [TASKS [CALLS]]]

use flexsc::{Builder, File, Loop};
use std::fs;
use std::io;
use std::io::Write as _;
use std::os::raw::{c_int, c_long};
use std::os::unix::io::{FromRawFd, OwnedFd};
use std::rc::Rc;

extern "C" {
    fn clock_gettime(clock: c_int, time: *mut [c_long; 2]) -> c_int;
    fn pipe(fds: *mut [c_int; 2]) -> c_int;
}

fn processor_time() -> u64 {
    let mut time = [0; 2];
    // SAFETY: CLOCK_PROCESS_CPUTIME_ID; a struct timespec is two longs.
    assert_eq!(unsafe { clock_gettime(2, &mut time) }, 0);
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

fn adopted_pipe(flexsc: &Loop) -> (File, File) {
    let mut fds = [0; 2];
    // SAFETY: Room for two descriptors, which are ours then.
    unsafe {
        assert_eq!(pipe(&mut fds), 0);
        let [reader, writer] = fds.map(|fd| flexsc.adopt(OwnedFd::from_raw_fd(fd)));
        (reader, writer)
    }
}

async fn preads(file: Rc<File>, n: usize) {
    let mut buffer = Vec::with_capacity(16);
    for _ in 0..n {
        let (read, same) = file.pread(buffer, 0).await;
        assert_eq!(read.unwrap(), 16);
        buffer = same;
    }
}

async fn pipes((reader, writer): (File, File), n: usize) {
    let (mut text, mut buffer) = (vec![0; 16], Vec::with_capacity(16));
    for _ in 0..n {
        let write = writer.write(text);
        text = write.await.1;
        let (read, same) = reader.read(buffer).await;
        assert_eq!(read.unwrap(), 16);
        buffer = same;
    }
}

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let engine = words.next().unwrap_or_default();
    let mut number = |default: usize| words.next().map_or(default, |word| word.parse().unwrap());
    let (tasks, calls) = (number(64), number(2_000_000));
    let flexsc = Builder::new().engine(&engine).build()?;
    let path = std::env::temp_dir().join(format!("flexsc-measure-{}", std::process::id()));
    fs::File::create(&path)?.write_all(&[1; 16])?;
    let file = Rc::new(flexsc.block_on(flexsc.open(&path))?);
    fs::remove_file(path)?;
    for what in ["pread", "write and read"] {
        let before = (processor_time(), flexsc.stats().mode_switches);
        let running: Vec<_> = (0..tasks)
            .map(|_| match what {
                "pread" => flexsc.spawn(preads(file.clone(), calls / tasks)),
                _ => flexsc.spawn(pipes(adopted_pipe(&flexsc), calls / tasks)),
            })
            .collect();
        flexsc.block_on(async {
            for task in running {
                task.await.unwrap();
            }
        });
        let time = (processor_time() - before.0) as f64 / calls as f64;
        let switches = (flexsc.stats().mode_switches - before.1) as f64 / calls as f64;
        println!(
            "{}: {tasks} tasks, {what}: {time:.0} ns, {switches:.3} mode switches",
            flexsc.engine()
        );
    }
    Ok(())
}
