//! Extracts the large tables of the grammars and packs them into `OUT_DIR`, so that `src/packed.rs`
//! can embed them and unpack them when a language is first used.
//!
//! The tables of all grammars take 18 MB, which most runs of haft never touch; packed they take 1
//! MB. They are read from the grammar crates, which are linked into this script. The rest of each
//! grammar's `parser.c` (its lexer, names and small tables) is compiled for the target here. In
//! that copy of the file, the large tables are zeroed memory, which takes no room in the binary,
//! and a function fills them.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tree_sitter_language::LanguageFn;

#[path = "build/tables.rs"]
#[expect(
    unsafe_code,
    reason = "a grammar is a C structure with pointers to its tables"
)]
mod tables;

/// The compression level. The result is at most a tenth larger than at the highest level, but takes
/// only a tenth of the time.
const COMPRESSION_LEVEL: i32 = 12;

/// The source of a grammar: its name in C symbols, its crate, the folder of `parser.c` in that
/// crate, and the function that returns the grammar.
struct GrammarSource(&'static str, &'static str, &'static str, LanguageFn);

const GRAMMARS: [GrammarSource; 13] = [
    GrammarSource(
        "bash",
        "tree-sitter-bash",
        "src",
        tree_sitter_bash::LANGUAGE,
    ),
    GrammarSource("c", "tree-sitter-c", "src", tree_sitter_c::LANGUAGE),
    GrammarSource(
        "c_sharp",
        "tree-sitter-c-sharp",
        "src",
        tree_sitter_c_sharp::LANGUAGE,
    ),
    GrammarSource("cpp", "tree-sitter-cpp", "src", tree_sitter_cpp::LANGUAGE),
    GrammarSource("go", "tree-sitter-go", "src", tree_sitter_go::LANGUAGE),
    GrammarSource(
        "java",
        "tree-sitter-java",
        "src",
        tree_sitter_java::LANGUAGE,
    ),
    GrammarSource(
        "javascript",
        "tree-sitter-javascript",
        "src",
        tree_sitter_javascript::LANGUAGE,
    ),
    GrammarSource(
        "php",
        "tree-sitter-php",
        "php/src",
        tree_sitter_php::LANGUAGE_PHP,
    ),
    GrammarSource(
        "python",
        "tree-sitter-python",
        "src",
        tree_sitter_python::LANGUAGE,
    ),
    GrammarSource(
        "ruby",
        "tree-sitter-ruby",
        "src",
        tree_sitter_ruby::LANGUAGE,
    ),
    GrammarSource(
        "rust",
        "tree-sitter-rust",
        "src",
        tree_sitter_rust::LANGUAGE,
    ),
    GrammarSource(
        "tsx",
        "tree-sitter-typescript",
        "tsx/src",
        tree_sitter_typescript::LANGUAGE_TSX,
    ),
    GrammarSource(
        "typescript",
        "tree-sitter-typescript",
        "typescript/src",
        tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/tables.rs");
    let little = env::var("CARGO_CFG_TARGET_ENDIAN")? == "little";
    if little != cfg!(target_endian = "little") {
        return Err(
            "the tables of grammars are packed as this machine keeps them, and the target has the other byte order"
                .into(),
        );
    }
    let out =
        PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this through cargo")?);
    GRAMMARS
        .iter()
        .try_for_each(|grammar| build_grammar(grammar, &out))
}

fn build_grammar(
    GrammarSource(name, package, folder, language): &GrammarSource,
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    let source = find_package_folder(package)?.join(folder);
    let tables = tables::read_tables(*language);
    let packed: Vec<u8> = tables
        .iter()
        .flat_map(|table| table.bytes.iter().copied())
        .collect();
    fs::write(
        out.join(format!("{name}.zst")),
        zstd::bulk::compress(&packed, COMPRESSION_LEVEL)?,
    )?;

    let parser = out.join(format!("{name}.c"));
    let text = fs::read_to_string(source.join("parser.c"))?;
    fs::write(
        &parser,
        replace_tables(&text, name, &tables)
            .map_err(|table| format!("{package}: no table {table}"))?,
    )?;
    let mut compiler = cc::Build::new();
    compiler
        .std("c11")
        .warnings(false)
        .include(&source)
        .file(parser);
    if source.join("scanner.c").exists() {
        compiler.file(source.join("scanner.c"));
    }
    compiler.try_compile(&format!("haft-grammar-{name}"))?;
    Ok(())
}

/// Returns the source folder of a package. It is found next to the folder of the package
/// `tree-sitter`, whose build script reports its own path. The folder name contains the version,
/// unless `cargo vendor` created it.
fn find_package_folder(package: &str) -> Result<PathBuf, Box<dyn Error>> {
    let include = env::var("DEP_TREE_SITTER_INCLUDE")?;
    let beside = Path::new(&include)
        .ancestors()
        .nth(2)
        .ok_or("tree-sitter lies nowhere")?;
    let folder = beside.join(format!("{package}-{}", read_locked_version(package)?));
    let vendored = beside.join(package);
    let found = [folder, vendored]
        .into_iter()
        .find(|folder| folder.is_dir());
    found.ok_or_else(|| {
        format!(
            "{package} does not lie in {}, where tree-sitter lies",
            beside.display()
        )
        .into()
    })
}

/// Returns the version of a package in the nearest `Cargo.lock`.
fn read_locked_version(package: &str) -> Result<String, Box<dyn Error>> {
    let here = env::var("CARGO_MANIFEST_DIR")?;
    let lock = Path::new(&here)
        .ancestors()
        .map(|folder| folder.join("Cargo.lock"))
        .find(|lock| lock.exists());
    let text = fs::read_to_string(lock.ok_or("there is no Cargo.lock")?)?;
    let entry = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) = text
        .split_once(&entry)
        .ok_or_else(|| format!("Cargo.lock has no {package}"))?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}

/// Replaces each table in the text of `parser.c` by zeroed memory, and appends the function that
/// fills the tables. The error is the name of the first table that the text does not contain.
fn replace_tables(
    text: &str,
    name: &str,
    tables: &[tables::GrammarTable],
) -> Result<String, &'static str> {
    let mut text = text.to_owned();
    let mut fill = String::new();
    for table in tables {
        let found = text.find(&format!(" {}[", table.name)).ok_or(table.name)?;
        let begin = text[..found].rfind("static const ").ok_or(table.name)?;
        let equals = found + text[found..].find(" = {").ok_or(table.name)?;
        let end = equals + text[equals..].find("\n};").ok_or(table.name)?;
        let declared = text[begin..equals]
            .replacen("const ", "", 1)
            .replace("[]", &format!("[{}]", table.length));
        text.replace_range(begin..end + 2, &declared);
        let _ = writeln!(
            fill,
            "  memcpy({0}, packed, sizeof {0}); packed += sizeof {0};",
            table.name
        );
    }
    let sizes: Vec<_> = tables
        .iter()
        .map(|table| format!("sizeof {}", table.name))
        .collect();
    let _ = write!(
        text,
        "\n#include <string.h>\nbool tree_sitter_{name}_fill(const uint8_t *packed, size_t length) {{\n  \
         if (length != {}) return false;\n{fill}  return true;\n}}\n",
        sizes.join(" + "),
    );
    Ok(text)
}
