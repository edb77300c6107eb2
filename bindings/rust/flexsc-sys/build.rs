// SPDX-License-Identifier: MIT
//! Finds libflexsc by pkg-config, and makes dependent crates link with it.
//!
//! `DEP_FLEXSC_INCLUDE` passes the headers' folders to the build scripts of dependent
//! crates. The documentation is built without the library.

use std::path::Path;
use std::process::{self, Command};
use std::{env, fs};

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);
/// Headers that declare more than inline functions; events have no declarations here.
const HEADERS: [&str; 7] = [
    "call.h",
    "default.h",
    "fd.h",
    "loop.h",
    "multishot.h",
    "stats.h",
    "work.h",
];

fn pkg_config(question: &str) -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let done = Command::new(&program)
        .args([question, &format!("flexsc >= {VERSION}")])
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(said.lines().next().unwrap_or("no output").to_string());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The words of pkg-config's answer that begin with this option.
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
    let read = |name: &str| {
        let folders = includes.iter().chain(&["/usr/include"]);
        let path = folders
            .map(|folder| Path::new(folder).join("flexsc").join(name))
            .find(|path| path.is_file())
            .ok_or_else(|| format!("flexsc/{name} is missing in its include folders"))?;
        println!("cargo:rerun-if-changed={}", path.display());
        fs::read_to_string(&path).map_err(|error| error.to_string())
    };
    write("numbers.rs", &numbers(&read("syscalls.h")?))?;
    let text: Result<String, String> = HEADERS.iter().map(|name| read(name)).collect();
    write("headers.rs", &declarations(&without_comments(&text?)))
}

/// The target machine's `FLEXSC_NR_*`, in the form that `lib.rs` expects.
fn numbers(header: &str) -> String {
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let condition = format!("defined(__{machine}__)");
    let lines: String = header
        .lines()
        .skip_while(|line| !(line.starts_with('#') && line.contains(&condition)))
        .skip(1)
        .map_while(|line| line.strip_prefix("#define FLEXSC_NR_"))
        .map(|line| format!("    {};\n", line.to_uppercase()))
        .collect();
    format!("numbers! {{\n{lines}}}\n")
}

fn without_comments(text: &str) -> String {
    let mut pieces = text.split("/*");
    let first = pieces.next().unwrap_or_default().to_string();
    let after = pieces.filter_map(|piece| piece.split_once("*/"));
    first + &after.map(|(_, code)| code).collect::<String>()
}

/// The headers' declarations, as Rust.
fn declarations(code: &str) -> String {
    let constants = code.lines().filter_map(constant);
    let plain: Vec<&str> = code.lines().filter(|line| !line.starts_with('#')).collect();
    let plain = plain.join(" ");
    let items = plain.split(&[';', '{', '}'][..]).map(str::trim);
    let functions = items.filter(|item| is_function(item)).map(function);
    let stats = plain
        .split_once("struct flexsc_stats {")
        .and_then(|(_, rest)| rest.split_once('}'));
    let fields = stats.expect("flexsc_stats").0.split(';').map(str::trim);
    let fields = fields
        .filter(|field| !field.is_empty())
        .map(|field| format!("pub {},\n", argument(field)));
    format!(
        "{}#[allow(missing_docs)]\n#[repr(C)]\n#[derive(Clone, Copy, Debug, Default)]\n\
         pub struct flexsc_stats {{\n{}}}\n\
         #[allow(missing_docs)]\nextern \"C\" {{\n{}}}\n",
        constants.collect::<String>(),
        fields.collect::<String>(),
        functions.collect::<String>()
    )
}

/// Parses `#define NAME 0x1U` and similar lines.
fn constant(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("#define ")?.split_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    let (kind, value) = match (value.strip_suffix("ULL"), value.strip_suffix('U')) {
        (Some(value), _) => ("u64", value),
        (None, Some(value)) => ("c_uint", value),
        _ if value == "UINT64_MAX" => ("u64", "u64::MAX"),
        _ => return None,
    };
    Some(format!(
        "#[allow(missing_docs)]\npub const {name}: {kind} = {value};\n"
    ))
}

/// Is it a function's declaration, and not a member or a part of an inline function's
/// body?
fn is_function(item: &str) -> bool {
    let kinds = ["int", "unsigned", "void", "const", "struct"];
    let (first, _) = item.split_once(' ').unwrap_or_default();
    let (head, _) = item.split_once('(').unwrap_or_default();
    kinds.contains(&first) && split_name(head).1.starts_with("flexsc_") && item.ends_with(')')
}

fn function(item: &str) -> String {
    let (head, arguments) = item.split_once('(').expect("arguments");
    let (result, name) = split_name(head);
    let arguments = arguments.trim_end_matches(')').split(',').map(str::trim);
    let arguments: Vec<String> = arguments
        .filter(|one| *one != "void")
        .map(argument)
        .collect();
    let result = match result.trim() {
        "void" => String::new(),
        kind => format!(" -> {}", rust_type(kind)),
    };
    format!("pub fn {name}({}){result};\n", arguments.join(", "))
}

/// "NAME: TYPE".
fn argument(text: &str) -> String {
    if let Some((_, rest)) = text.split_once("(*") {
        let name = rest.split(')').next().unwrap_or_default();
        return format!("{name}: Option<unsafe extern \"C\" fn(arg: *mut c_void) -> i64>");
    }
    let (text, pointer) = match text.split_once('[') {
        Some((text, _)) => (text, "*"),
        None => (text, ""),
    };
    let (kind, name) = split_name(text);
    let keyword = if name == "loop" { "r#" } else { "" };
    format!(
        "{keyword}{name}: {}",
        rust_type(&format!("{kind}{pointer}"))
    )
}

fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.rfind([' ', '*']).map_or(0, |at| at + 1))
}

fn rust_type(c: &str) -> String {
    let words = c.replace('*', " ");
    let words: Vec<&str> = words
        .split_whitespace()
        .filter(|word| !["const", "struct"].contains(word))
        .collect();
    let base = match words.join(" ").as_str() {
        "int" => "c_int",
        "unsigned int" => "c_uint",
        "char" => "c_char",
        "void" => "c_void",
        "uint64_t" => "u64",
        "size_t" => "usize",
        name if name.starts_with("flexsc_") => words[0],
        other => panic!("no Rust type for {other}"),
    };
    let target = if c.contains("const") {
        "*const "
    } else {
        "*mut "
    };
    target.repeat(c.matches('*').count()) + base
}

fn write(name: &str, text: &str) -> Result<(), String> {
    let path = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join(name);
    fs::write(path, text).map_err(|error| error.to_string())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        println!("cargo:rustc-env=FLEXSC_INCLUDE=");
        write("numbers.rs", "numbers! {}").expect("numbers.rs");
        write("headers.rs", &declarations("struct flexsc_stats {}")).expect("headers.rs");
        return;
    }
    if let Err(why) = find() {
        eprintln!("flexsc-sys: pkg-config finds no libflexsc {VERSION} or later; add the folder of flexsc.pc to PKG_CONFIG_PATH: {why}");
        process::exit(1);
    }
}
