// SPDX-License-Identifier: MIT
//! Finds libflexsc by pkg-config, and has what links with it link with the library.
//!
//! `DEP_FLEXSC_INCLUDE` tells the build scripts of dependent crates where the
//! headers are. The documentation is built without the library.

use std::env;
use std::process::{self, Command};

const VERSION: &str = "0.1";

fn pkg_config(question: &str) -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let done = Command::new(&program)
        .args([question, &format!("flexsc >= {VERSION}")])
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(said.lines().next().unwrap_or("it says nothing").to_string());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The words of an answer that begin with this option.
fn operands<'a>(answer: &'a str, option: &'a str) -> impl Iterator<Item = &'a str> {
    answer
        .split_whitespace()
        .filter_map(move |word| word.strip_prefix(option))
}

fn find() -> Result<(), String> {
    let libs = pkg_config("--libs")?;
    let cflags = pkg_config("--cflags")?;
    for folder in operands(&libs, "-L") {
        println!("cargo:rustc-link-search=native={folder}");
    }
    for library in operands(&libs, "-l") {
        println!("cargo:rustc-link-lib={library}");
    }
    let includes: Vec<&str> = operands(&cflags, "-I").collect();
    println!("cargo:include={}", includes.join(":"));
    println!("cargo:rustc-env=FLEXSC_INCLUDE={}", includes.join(":"));
    Ok(())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        println!("cargo:rustc-env=FLEXSC_INCLUDE=");
        return;
    }
    if let Err(why) = find() {
        eprintln!("flexsc-sys: no libflexsc {VERSION} or later by pkg-config (PKG_CONFIG_PATH names folders with flexsc.pc): {why}");
        process::exit(1);
    }
}
