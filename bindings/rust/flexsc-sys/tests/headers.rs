// SPDX-License-Identifier: MIT
//! The declarations match the C headers: sizes, offsets, constants and call numbers.
//! `cc` compiles a program of assertions.

use flexsc_sys::*;
use std::fmt::Write as _;
use std::mem::{align_of, size_of, MaybeUninit};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, process, ptr};

/// Compile a text with the headers' folders; returns the compiler's output.
fn compile(name: &str, text: &str, options: &[&str]) -> Output {
    let source = env::temp_dir().join(format!("flexsc-sys-{}-{name}.c", process::id()));
    fs::write(&source, text).unwrap();
    let includes = env!("FLEXSC_INCLUDE")
        .split(':')
        .map(|path| format!("-I{path}"));
    let done = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-Werror", "-fsyntax-only"])
        .args(includes)
        .args(options)
        .arg(&source)
        .output()
        .expect("a C compiler");
    fs::remove_file(&source).unwrap();
    done
}

fn must_compile(name: &str, text: &str) {
    let done = compile(name, text, &[]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

const HEAD: &str = "#include <flexsc/default.h>\n#include <stddef.h>\n";

/// Assertions about a structure; all of its fields have to be listed.
macro_rules! structure {
    ($text:expr, $name:ident, $($field:ident)*) => {{
        let name = stringify!($name);
        writeln!($text, "_Static_assert(sizeof(struct {name}) == {}, \"\");",
                 size_of::<$name>()).unwrap();
        writeln!($text, "_Static_assert(_Alignof(struct {name}) == {}, \"\");",
                 align_of::<$name>()).unwrap();
        let place = MaybeUninit::<$name>::uninit();
        let base = place.as_ptr();
        $(
            // SAFETY: Only the address is taken; the memory isn't read.
            let field = unsafe { std::ptr::addr_of!((*base).$field) };
            let field_name = stringify!($field);
            writeln!($text, "_Static_assert(offsetof(struct {name}, {field_name}) == {}, \"\");",
                     field as usize - base as usize).unwrap();
            writeln!($text, "_Static_assert(sizeof(((struct {name} *)0)->{field_name}) == {}, \"\");",
                     size_of_pointee(field)).unwrap();
        )*
        // Exhaustive: a missing field doesn't compile.
        #[allow(dead_code)]
        fn all(value: $name) {
            let $name { $($field: _),* } = value;
        }
    }};
}

fn size_of_pointee<T>(_: *const T) -> usize {
    size_of::<T>()
}

#[test]
fn structures_are_laid_out_as_in_c() {
    let mut text = HEAD.to_string();
    structure!(text, flexsc_cb, callback arg ret handle flags buffer reserved);
    structure!(text, flexsc_options,
        size engine kernel_cores max_entries max_threads poll_us flags
        backlog reserved);
    structure!(text, flexsc_stats,
        posted completed cancelled waited batches batched mode_switches by_inline
        by_uring by_thread timers wakeups outstanding waiting entries max_entries
        threads max_threads bytes by_kmod failed_unseen);
    structure!(text, flexsc_stats_page, magic size tid engine stats);
    must_compile("structures", &text);
}

#[test]
fn a_wrong_layout_is_found() {
    let text = format!("{HEAD}_Static_assert(sizeof(struct flexsc_cb) == 49, \"\");\n");
    assert!(!compile("wrong", &text, &[]).status.success());
}

#[test]
fn constants_have_the_values_of_c() {
    let mut text = HEAD.to_string();
    let mut equal = |name: &str, value: u64| {
        writeln!(text, "_Static_assert({name} == {value}ULL, \"\");").unwrap();
    };
    equal("FLEXSC_FOREVER", FLEXSC_FOREVER);
    equal("FLEXSC_CHAIN_ARG(5)", FLEXSC_CHAIN_ARG(5).into());
    equal("FLEXSC_FD_NONBLOCK", FLEXSC_FD_NONBLOCK.into());
    equal("FLEXSC_STATS_MAGIC", FLEXSC_STATS_MAGIC);
    equal("FLEXSC_VERSION", FLEXSC_VERSION.into());
    writeln!(
        text,
        "const char name[] = FLEXSC_STATS_NAME;\n_Static_assert(sizeof(name) == {}, \"\");",
        FLEXSC_STATS_NAME.len() + 1
    )
    .unwrap();
    must_compile("constants", &text);
}

/// The folder of one header; without "-I" it is in the system's folder.
fn path_of(header: &str) -> PathBuf {
    let folders = env!("FLEXSC_INCLUDE").split(':').map(Path::new);
    let mut paths = folders.map(|folder| folder.join("flexsc").join(header));
    let found = paths.find(|path| path.is_file());
    found.unwrap_or_else(|| Path::new("/usr/include/flexsc").join(header))
}

#[test]
fn calls_have_the_numbers_of_c() {
    let mut text = HEAD.to_string();
    for (name, number) in nr::ALL {
        let name = name.to_lowercase();
        writeln!(text, "_Static_assert(FLEXSC_NR_{name} == {number}, \"\");").unwrap();
    }
    must_compile("numbers", &text);
}

#[test]
fn no_call_of_the_headers_is_missing() {
    let header = fs::read_to_string(path_of("syscalls.h")).unwrap();
    let defined = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define FLEXSC_NR_"));
    // Numbers that exist only on the other machine must not be defined here.
    let mut text = HEAD.to_string();
    let mut n = 0;
    for name in defined.filter_map(|line| line.split_whitespace().next()) {
        let known = nr::ALL
            .iter()
            .any(|(ours, _)| ours.eq_ignore_ascii_case(name));
        if !known {
            writeln!(text, "#ifdef FLEXSC_NR_{name}\n#error {name}\n#endif").unwrap();
        }
        n += 1;
    }
    assert!(n >= nr::ALL.len());
    must_compile("missing", &text);
}

/// Call one function of each header, which tests that build.rs's declarations link.
#[test]
fn functions_are_declared() {
    // SAFETY: None of these functions needs a loop.
    unsafe {
        assert_eq!(flexsc_loop_cancel(ptr::null_mut(), ptr::null_mut()), -6);
        assert_eq!(flexsc_loop_run(ptr::null_mut()), -6);
        assert_eq!(
            flexsc_fd_hint(-1, FLEXSC_FD_REGULAR | FLEXSC_FD_STREAM),
            -22
        );
        assert_eq!(flexsc_buffers_destroy(ptr::null_mut()), -22);
        assert_eq!(
            flexsc_loop_work(ptr::null_mut(), ptr::null_mut(), None, ptr::null_mut()),
            -6
        );
        assert_eq!(flexsc_loop_stats(ptr::null(), ptr::null_mut(), 0), -6);
        assert!(flexsc_loop_default().is_null());
    }
}

#[test]
fn the_library_is_of_this_version_or_later() {
    // SAFETY: It has no preconditions.
    assert!(unsafe { flexsc_version() } >= FLEXSC_VERSION);
}
