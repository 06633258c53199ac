//! Tests with documents of other programs (see `fixtures/make.sh`) and with malicious documents.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

/// The helper process that reads PDF files, if the program was started as one; not a test of its
/// own.
#[test]
fn __haft_read_pdf() {
    if let Some(code) = read_pdf_entry(std::env::args_os()) {
        // A test that returned would count as a success, whatever the exit code was.
        let code = if code == std::process::ExitCode::SUCCESS {
            0
        } else {
            status_of(code)
        };
        std::process::exit(code);
    }
}

/// Returns the number of an exit code, which has no accessor.
fn status_of(code: std::process::ExitCode) -> i32 {
    (1..=255)
        .find(|number| code == std::process::ExitCode::from(*number))
        .map_or(1, i32::from)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Reads a file of this name and content; `cancel` may already be canceled.
async fn read_with(
    file: &str,
    bytes: impl AsRef<[u8]>,
    cancel: CancellationToken,
) -> Result<DocumentText, DocumentError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    let spill = folder.path().join("spill");
    let bytes = bytes.as_ref().to_vec();
    fs::write(&path, &bytes).unwrap();
    let reader = FormatReaders::new(Arc::new(Supervisor::for_tests().unwrap()));
    assert!(
        reader.detect_format(&path, &bytes).is_some(),
        "{file} is no document"
    );
    let work = move || {
        reader.read_text(&DocumentSource {
            path: &path,
            bytes: &bytes,
            spill: &spill,
            cancel: &cancel,
        })
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn read_text(file: &str, bytes: impl AsRef<[u8]>) -> Result<String, DocumentError> {
    let text = read_with(file, bytes, CancellationToken::new()).await?.text;
    Ok(format!("{}\n", text.lines().collect::<Vec<_>>().join("\n")))
}

#[tokio::test]
async fn documents_of_other_programs_are_read_completely() {
    let mut seen = 0;
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let expected = path.with_added_extension("txt");
        if expected.exists() {
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = read_text(name, fs::read(&path).unwrap()).await.unwrap();
            assert_eq!(text, fs::read_to_string(&expected).unwrap(), "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, 11);
}

#[tokio::test]
async fn format_is_recognized_by_content_not_by_name() {
    let text = read_text(
        "renamed.bin",
        fs::read(fixtures().join("report.docx")).unwrap(),
    )
    .await
    .unwrap();
    assert!(text.contains("Quarterly report"), "{text}");
    let reader = FormatReaders::new(Arc::new(Supervisor::for_tests().unwrap()));
    for (file, text) in [
        ("plain.pdf", "no document\n"),
        ("other.ipynb", "{\"cells\": 1}\n"),
    ] {
        assert_eq!(
            reader.detect_format(Path::new(file), text.as_bytes()),
            None,
            "{file}"
        );
    }
    assert!(
        reader.is_likely_document(Path::new("a.PDF"))
            && !reader.is_likely_document(Path::new("a.rs"))
    );
}

#[tokio::test]
async fn documents_with_a_password_are_reported() {
    for file in ["encrypted.docx", "encrypted.ods", "encrypted.pdf"] {
        let error = read_text(file, fs::read(fixtures().join(file)).unwrap())
            .await
            .unwrap_err();
        assert_eq!(error, DocumentError::Encrypted, "{file}");
    }
    let old = [b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".as_slice(), &[0; 600]].concat();
    assert_eq!(
        read_text("old.doc", old).await.unwrap_err(),
        DocumentError::Legacy
    );
}

/// Returns an archive with these parts.
fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, content) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const TYPES: &[u8] = br#"<Types><Override PartName="/word/document.xml"
    ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;

fn word_document(document: &[u8]) -> Vec<u8> {
    archive(&[
        ("[Content_Types].xml", TYPES),
        ("word/document.xml", document),
    ])
}

#[tokio::test]
async fn documents_that_unpack_to_too_much_are_rejected() {
    let bomb = word_document(&vec![b' '; 40 * 1024 * 1024]);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let error = read_text("bomb.docx", &bomb).await.unwrap_err();
    assert!(matches!(error, DocumentError::TooLarge(_)), "{error:?}");

    // The size in the headers of the archive is falsified in both places.
    let mut liar = bomb.clone();
    let size = (40_u32 * 1024 * 1024).to_le_bytes();
    let places: Vec<usize> = (0..liar.len() - 4)
        .filter(|at| liar[*at..at + 4] == size)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        liar[at..at + 4].copy_from_slice(&1_000_u32.to_le_bytes());
    }
    let error = read_text("liar.docx", &liar).await.unwrap_err();
    assert!(
        matches!(
            error,
            DocumentError::TooLarge(_) | DocumentError::Damaged(_)
        ),
        "{error:?}"
    );

    let names: Vec<String> = (0..20_001).map(|number| format!("part{number}")).collect();
    let parts: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    assert!(DocumentArchive::open(&archive(&parts)).is_err());
}

#[tokio::test]
async fn documents_do_not_resolve_their_own_entities() {
    let document = br#"<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
        <d><p><t>&b;&lt;&#233;&#x6F22;</t></p></d>"#;
    let text = read_text("entities.docx", word_document(document))
        .await
        .unwrap();
    assert_eq!(text, "&b;<é漢\n");
}

#[tokio::test]
async fn documents_nested_tables_and_fallbacks_are_read_once() {
    let document = br#"<w:document><w:tbl><w:tr><w:tc><w:p><w:r><w:t>outer</w:t></w:r></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:t>in</w:t></w:p></w:tc><w:tc><w:p><w:t>ner</w:t></w:p></w:tc></w:tr></w:tbl></w:tc>
        <w:tc><w:p/></w:tc></w:tr></w:tbl>
        <w:p><mc:AlternateContent><mc:Choice><w:t>once</w:t></mc:Choice><mc:Fallback><w:t>twice</w:t></mc:Fallback></mc:AlternateContent>
        <w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins><w:r><w:t xml:space="preserve"> here</w:t></w:r></w:ins></w:p></w:document>"#;
    let text = read_text("nested.docx", word_document(document))
        .await
        .unwrap();
    assert_eq!(text, "| outer \\| in \\| ner \\| |  |\n\nonce here\n");
}

/// Builds a document from the content of a part.
type Make<'a> = &'a dyn Fn(&str) -> Vec<u8>;

fn nested_markup(depth: usize, open: &str, inside: &str, close: &str) -> String {
    format!(
        "<d>{}{inside}{}</d>",
        open.repeat(depth),
        close.repeat(depth)
    )
}

/// Every format that nests: very deep nesting is rejected, moderate nesting is read.
#[tokio::test]
async fn documents_with_deep_nesting_are_rejected() {
    let text_types: &[u8] = b"application/vnd.oasis.opendocument.text";
    let odt = |content: &str| {
        archive(&[
            ("mimetype", text_types),
            ("content.xml", content.as_bytes()),
        ])
    };
    let pptx = |slide: &str| {
        let types = br#"<Types><Override PartName="/ppt/presentation.xml"
            ContentType="application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"/></Types>"#;
        let main =
            br#"<p:presentation xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>"#;
        let relations =
            br#"<Relationships><Relationship Id="rId1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>"#;
        archive(&[
            ("[Content_Types].xml", types),
            ("ppt/presentation.xml", main),
            ("ppt/_rels/presentation.xml.rels", relations),
            ("ppt/slides/slide1.xml", slide.as_bytes()),
        ])
    };
    let word = |content: &str| word_document(content.as_bytes());
    let cases: [(&str, Make<'_>, &str, &str, &str); 6] = [
        (
            "tables.docx",
            &word,
            "<w:tbl><w:tr><w:tc>",
            "<w:p><w:t>deep | text</w:t></w:p>",
            "</w:tc></w:tr></w:tbl>",
        ),
        (
            "controls.docx",
            &word,
            "<w:sdt><w:sdtContent>",
            "<w:p><w:t>deep</w:t></w:p>",
            "</w:sdtContent></w:sdt>",
        ),
        (
            "tables.odt",
            &odt,
            "<table:table><table:table-row><table:table-cell>",
            "<text:p>deep | text</text:p>",
            "</table:table-cell></table:table-row></table:table>",
        ),
        (
            "lists.odt",
            &odt,
            "<text:list><text:list-item>",
            "<text:p>deep</text:p>",
            "</text:list-item></text:list>",
        ),
        (
            "frames.odt",
            &odt,
            "<draw:frame><draw:text-box>",
            "<text:p>deep</text:p>",
            "</draw:text-box></draw:frame>",
        ),
        (
            "groups.pptx",
            &pptx,
            "<p:grpSp><p:sp>",
            "<a:p><a:r><a:t>deep</a:t></a:r></a:p>",
            "</p:sp></p:grpSp>",
        ),
    ];
    for (file, make, open, inside, close) in cases {
        let error = read_text(file, make(&nested_markup(5_000, open, inside, close)))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, DocumentError::TooLarge(reason) if reason.contains("deep")),
            "{file}: {error:?}"
        );
        let text = read_text(file, make(&nested_markup(20, open, inside, close)))
            .await
            .unwrap();
        assert!(text.contains("deep"), "{file}: {text}");
    }
}

/// A cell of half a megabyte, repeated a thousand times in a row that is repeated a thousand times.
#[tokio::test]
async fn documents_with_repeated_cells_stay_within_the_size_limit() {
    let types: &[u8] = b"application/vnd.oasis.opendocument.spreadsheet";
    let words = "word ".repeat(100_000);
    let sheet = format!(
        "<d><table:table table:name=\"s\"><table:table-row table:number-rows-repeated=\"1000\">\
         <table:table-cell table:number-columns-repeated=\"1000\"><text:p>{words}</text:p></table:table-cell>\
         </table:table-row></table:table></d>"
    );
    let ods = archive(&[("mimetype", types), ("content.xml", sheet.as_bytes())]);
    let read = read_with("repeated.ods", ods, CancellationToken::new())
        .await
        .unwrap();
    assert!(
        read.truncated && read.text.len() <= MAX_TEXT_BYTES,
        "{}",
        read.text.len()
    );
}

/// The second read starts no process: the process would have no folder to write to.
#[tokio::test]
async fn documents_once_rejected_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pdf");
    let bytes = b"%PDF-1.7\nnothing more".to_vec();
    fs::write(&path, &bytes).unwrap();
    let reader = Arc::new(FormatReaders::new(Arc::new(
        Supervisor::for_tests().unwrap(),
    )));
    for spill in ["spill", "a.pdf/nowhere"] {
        let reader = Arc::clone(&reader);
        let path = path.clone();
        let bytes = bytes.clone();
        let spill = folder.path().join(spill);
        let cancel = CancellationToken::new();
        let work = move || {
            reader.read_text(&DocumentSource {
                path: &path,
                bytes: &bytes,
                spill: &spill,
                cancel: &cancel,
            })
        };
        let error = tokio::task::spawn_blocking(work)
            .await
            .unwrap()
            .unwrap_err();
        assert!(matches!(error, DocumentError::Damaged(_)), "{error:?}");
    }
}

#[tokio::test]
async fn documents_that_are_damaged_are_reported() {
    for (file, bytes) in [
        (
            "cut.docx",
            word_document(b"<w:document><w:p><w:t>text</w:p>"),
        ),
        ("cut.pdf", b"%PDF-1.7\nnothing more".to_vec()),
        ("empty.docx", archive(&[("[Content_Types].xml", TYPES)])),
        ("bad.ipynb", br#"{"nbformat": 4, "cells": 3}"#.to_vec()),
    ] {
        let error = read_text(file, bytes).await.unwrap_err();
        assert!(
            matches!(error, DocumentError::Damaged(_)),
            "{file}: {error:?}"
        );
    }
}

/// Returns the smallest PDF file with these objects, the first of which is its catalog.
fn pdf_file(objects: &[&str]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(file.len());
        write!(file, "{number} 0 obj\n{object}\nendobj\n").unwrap();
    }
    let start = file.len();
    let size = objects.len() + 1;
    write!(file, "xref\n0 {size}\n0000000000 65535 f \n").unwrap();
    for place in places {
        writeln!(file, "{place:010} 00000 n ").unwrap();
    }
    write!(
        file,
        "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    )
    .unwrap();
    file
}

#[tokio::test]
async fn pdf_that_draws_itself_crashes_only_the_helper_process() {
    let stream = |content: &str, more: &str| {
        format!(
            "<< /Length {} {more} >>\nstream\n{content}\nendstream",
            content.len()
        )
    };
    let itself = stream(
        "/Me Do",
        "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /Me 5 0 R >> >>",
    );
    let file = pdf_file(&[
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /Me 5 0 R >> >> >>",
        &stream("/Me Do", ""),
        &itself,
    ]);
    let error = read_text("itself.pdf", file).await.unwrap_err();
    assert!(
        matches!(&error, DocumentError::Damaged(reason) if reason.contains("crashed")),
        "{error:?}"
    );
}

#[tokio::test]
async fn pages_without_text_are_reported() {
    let file = pdf_file(&[
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Resources << >> >>",
    ]);
    let text = read_text("scan.pdf", file).await.unwrap();
    assert!(text.contains("may be pictures"), "{text}");
}

#[tokio::test]
async fn read_ends_when_canceled() {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    for (file, fixture) in [("a.pdf", "paper.pdf"), ("a.docx", "report.docx")] {
        let read = read_with(
            file,
            fs::read(fixtures().join(fixture)).unwrap(),
            cancelled.clone(),
        )
        .await;
        assert_eq!(read, Err(DocumentError::Canceled), "{file}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any markup, in every place where XML is read: no panic, no control characters, no unlimited
    /// text.
    #[test]
    fn readers_survive_any_markup(pieces in proptest::collection::vec(prop_oneof![
        Just("<p>"), Just("</p>"), Just("<t>"), Just("</t>"), Just("<tbl>"), Just("</tbl>"), Just("<tr>"), Just("</tr>"), Just("<tc>"),
        Just("</tc>"), Just("<row r=\"9\">"), Just("</row>"), Just("<c r=\"XFD1\" t=\"s\">"), Just("</c>"), Just("<v>7\u{8}</v>"), Just("<f>1+1</f>"),
        Just("<table name=\"x\">"), Just("</table>"), Just("<table-row number-rows-repeated=\"99999999999\">"), Just("</table-row>"),
        Just("<table-cell number-columns-repeated=\"99999999999\">"), Just("</table-cell>"), Just("<list>"), Just("</list>"), Just("<note>"),
        Just("</note>"), Just("<note-body>"), Just("<annotation>"), Just("<date>"), Just("</date>"), Just("<frame>"), Just("</frame>"), Just("<image/>"),
        Just("<pPr>"), Just("</pPr>"), Just("<ilvl val=\"99\"/>"), Just("<numPr>"), Just("<s c=\"99999999999\"/>"), Just("text \u{7}|\u{1b}[0m"),
        Just("&#0;"), Just("&amp;"), Just("&x;"), Just("<Fallback>"), Just("</Fallback>"), Just("<page/>"), Just("<notes>"), Just("</notes>"),
    ], 0..50)) {
        let xml = format!("<d>{}</d>", pieces.concat());
        let stop = || false;
        let sheet_types = String::from_utf8_lossy(TYPES).replace("wordprocessingml.document", "spreadsheetml.sheet");
        let book: &[u8] = br#"<w><sheet name="a&#7;" r:id="r1"/></w>"#;
        let relations: &[u8] = br#"<R><Relationship Id="r1" Type="x/worksheet" Target="a.xml"/></R>"#;
        let excel = archive(&[("[Content_Types].xml", sheet_types.as_bytes()), ("word/document.xml", book),
            ("word/_rels/document.xml.rels", relations), ("word/a.xml", xml.as_bytes())]);
        let open = archive(&[("content.xml", xml.as_bytes()), ("styles.xml", xml.as_bytes())]);
        let word = word_document(xml.as_bytes());
        let results = [
            ooxml::word::read_document(&mut DocumentArchive::open(&word).unwrap(), &stop),
            ooxml::excel::read_workbook(&mut DocumentArchive::open(&excel).unwrap(), &stop),
            odf::read_document(&mut DocumentArchive::open(&open).unwrap(), Format::OpenText, &stop),
            odf::read_document(&mut DocumentArchive::open(&open).unwrap(), Format::OpenSpreadsheet, &stop),
            odf::read_document(&mut DocumentArchive::open(&open).unwrap(), Format::OpenPresentation, &stop),
        ];
        for text in results.into_iter().flatten().map(|extracted| extracted.text) {
            prop_assert!(text.len() <= MAX_TEXT_BYTES);
            prop_assert!(!text.contains(|one: char| one.is_control() && one != '\n' && one != '\t'), "{text:?}");
        }
    }
}
