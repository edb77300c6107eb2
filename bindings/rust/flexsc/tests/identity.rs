// SPDX-License-Identifier: MIT
//! Calls have the users of the process, also after a change. In a program of its own,
//! because all threads change.

mod common;

use common::{error_of, Folder, ALL};
use flexsc::{identity_changed, Builder, Loop};
use std::fs::{self, Permissions};
use std::os::raw::c_int;
use std::os::unix::fs::PermissionsExt;

const EACCES: i32 = 13;
const NOBODY: u32 = 65534;

extern "C" {
    fn geteuid() -> u32;
    fn seteuid(user: u32) -> c_int;
}

fn become_user(user: u32) {
    // SAFETY: The function has no preconditions.
    assert_eq!(unsafe { seteuid(user) }, 0);
    identity_changed();
}

#[test]
fn calls_have_the_changed_user() {
    // SAFETY: The function has no preconditions.
    if unsafe { geteuid() } != 0 {
        eprintln!("skipped: needs root privileges");
        return;
    }
    let folder = Folder::new();
    let path = folder.join("private");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    for engine in ALL {
        if let Err(why) = Loop::probe(engine) {
            eprintln!("skipped with {engine}: {why}");
            continue;
        }
        for listed in [false, true] {
            let mut builder = Builder::new().engine(engine);
            if listed {
                builder = builder.kernel_cores("0-1023");
            }
            let flexsc = builder.build().unwrap();
            let error = || error_of(flexsc.block_on(flexsc.open(&path)));
            for _ in 0..3 {
                let before = error();
                become_user(NOBODY);
                let after = error();
                become_user(0);
                assert_eq!((before, after), (0, EACCES), "{engine} {listed}");
            }
        }
    }
}
