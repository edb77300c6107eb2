// SPDX-License-Identifier: MIT
//! Finds libflexsc by pkg-config, and has what links with it link with the library.
//!
//! `DEP_FLEXSC_INCLUDE` tells the build scripts of dependent crates where the
//! headers are. The documentation is built without the library.

use std::path::Path;
use std::process::{self, Command};
use std::{env, fs};

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
    let headers = includes.iter().chain(&["/usr/include"]);
    let header = headers
        .map(|folder| Path::new(folder).join("flexsc/syscalls.h"))
        .find(|path| path.is_file())
        .ok_or("no flexsc/syscalls.h in its folders")?;
    println!("cargo:rerun-if-changed={}", header.display());
    let text = fs::read_to_string(&header).map_err(|error| error.to_string())?;
    write_numbers(&numbers(&text))
}

/// `FLEXSC_NR_*` of the machine that is compiled for, in the form of `lib.rs`.
fn numbers(header: &str) -> String {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let condition = format!("defined(__{machine}__)");
    header
        .lines()
        .skip_while(|line| !(line.starts_with('#') && line.contains(&condition)))
        .skip(1)
        .map_while(|line| line.strip_prefix("#define FLEXSC_NR_"))
        .map(|line| format!("    {};\n", line.to_uppercase()))
        .collect()
}

fn write_numbers(numbers: &str) -> Result<(), String> {
    let path = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("numbers.rs");
    fs::write(path, format!("numbers! {{\n{numbers}}}\n")).map_err(|error| error.to_string())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        println!("cargo:rustc-env=FLEXSC_INCLUDE=");
        write_numbers("").expect("numbers.rs");
        return;
    }
    if let Err(why) = find() {
        eprintln!("flexsc-sys: no libflexsc {VERSION} or later by pkg-config (PKG_CONFIG_PATH names folders with flexsc.pc): {why}");
        process::exit(1);
    }
}
