//! Tests with hostile servers over real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use haft_tool::{DocumentError, DocumentFormat, DocumentReader, DocumentSource, DocumentText};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::crawl::{Bounds, Crawled, crawl_site};
use crate::fetch::{Fetcher, ReadContext, WebError};
use crate::proxy::WebProxies;

/// A server that answers every request by its path, and records the paths.
struct Site {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

type Answer = fn(&str, &mut TcpStream) -> std::io::Result<()>;

impl Site {
    fn new(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || {
                    let Some(path) = read_path(&mut stream) else {
                        return;
                    };
                    seen.lock().unwrap().push(path.clone());
                    // The client may close the connection before everything is sent.
                    let _ = answer(&path, &mut stream);
                });
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> Url {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn read_path(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&request)
        .split(' ')
        .nth(1)
        .map(str::to_owned)
}

fn reply(stream: &mut TcpStream, head: &str, body: &[u8]) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

fn html(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    reply(stream, "200 OK\r\ncontent-type: text/html", body.as_bytes())
}

/// Returns a place for documents that cannot be written, with a token that is never canceled.
fn read_place() -> ReadContext<'static> {
    static NEVER: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
    ReadContext {
        spill: Path::new("/nonexistent"),
        cancel: &NEVER,
    }
}

fn fetcher(private: &[&str]) -> Fetcher {
    Fetcher::new(
        &private
            .iter()
            .map(|host| (*host).to_owned())
            .collect::<Vec<_>>(),
    )
    .unwrap()
}

async fn read_page(url: Url) -> Result<Crawled, WebError> {
    crawl_site(
        &fetcher(&["127.0.0.1"]),
        url,
        Bounds { pages: 1, depth: 1 },
        read_place(),
    )
    .await
}

#[tokio::test]
async fn crawl_refuses_addresses_of_this_machine_in_any_notation() {
    let site = Site::new(|_, stream| html(stream, "<p>secret"));
    let port = site.address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "169.254.169.254",
    ] {
        let url: Url = format!("http://{host}:{port}/").parse().unwrap();
        let error = crawl_site(
            &fetcher(&[]),
            url,
            Bounds { pages: 1, depth: 1 },
            read_place(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.code(), "private_address", "{host}: {error}");
    }
    for wrong in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://me:secret@example.com/",
    ] {
        let error = crawl_site(
            &fetcher(&[]),
            wrong.parse().unwrap(),
            Bounds { pages: 1, depth: 1 },
            read_place(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.code(), "invalid_arguments", "{wrong}: {error}");
    }
    assert!(
        site.asked().is_empty(),
        "nothing was connected to: {:?}",
        site.asked()
    );
}

#[tokio::test]
async fn crawl_reaches_only_private_hosts_the_user_named() {
    let site = Site::new(|_, stream| html(stream, "<title>Here</title><p>hello"));
    assert!(
        read_page(site.url("/")).await.unwrap().pages[0]
            .text
            .contains("hello")
    );
    let other: Url = format!("http://localhost:{}/", site.address.port())
        .parse()
        .unwrap();
    assert_eq!(
        read_page(other.clone()).await.unwrap_err().code(),
        "private_address"
    );
    let named = crawl_site(
        &fetcher(&["LocalHost"]),
        other,
        Bounds { pages: 1, depth: 1 },
        read_place(),
    )
    .await
    .unwrap();
    assert_eq!(named.pages[0].title, "Here");
}

#[tokio::test]
async fn crawl_follows_redirects_only_within_the_host() {
    let site = Site::new(|path, stream| {
        let to = match path {
            "/here" => "/there",
            "/inside" => "http://169.254.169.254/latest/meta-data",
            "/local" => "http://localhost:1/",
            "/file" => "file:///etc/passwd",
            "/round" => "/round",
            _ => return html(stream, "<p>arrived"),
        };
        reply(stream, &format!("302 Found\r\nlocation: {to}"), b"")
    });
    let arrived = read_page(site.url("/here")).await.unwrap();
    assert_eq!(arrived.pages[0].url, site.url("/there"));
    for path in ["/inside", "/local", "/file"] {
        let error = read_page(site.url(path)).await.unwrap_err();
        assert_eq!(error.code(), "moved", "{path}: {error}");
    }
    let error = read_page(site.url("/round")).await.unwrap_err();
    assert!(matches!(error, WebError::TooManyRedirects(_)), "{error}");
}

#[tokio::test]
async fn crawl_honors_robots_txt() {
    let site = Site::new(|path, stream| match path {
        "/robots.txt" => reply(stream, "200 OK", b"User-agent: *\nDisallow: /private\n"),
        _ => html(
            stream,
            "<a href='/private/a'>a</a> <a href='/b'>b</a><p>text",
        ),
    });
    assert_eq!(
        read_page(site.url("/private/a")).await.unwrap_err().code(),
        "robots"
    );
    let both = crawl_site(
        &fetcher(&["127.0.0.1"]),
        site.url("/"),
        Bounds { pages: 5, depth: 1 },
        read_place(),
    )
    .await
    .unwrap();
    let pages: Vec<_> = both.pages.iter().map(|page| page.url.path()).collect();
    assert_eq!(pages, ["/", "/b"]);
    let failed: Vec<_> = both
        .failed
        .iter()
        .map(|(url, error)| (url.path(), error.code()))
        .collect();
    assert_eq!(failed, [("/private/a", "robots")]);
    assert!(
        site.asked()
            .iter()
            .all(|path| !path.starts_with("/private")),
        "{:?}",
        site.asked()
    );

    let broken = Site::new(|path, stream| match path {
        "/robots.txt" => reply(stream, "503 Service Unavailable", b""),
        _ => html(stream, "<p>text"),
    });
    assert_eq!(
        read_page(broken.url("/")).await.unwrap_err().code(),
        "robots",
        "a site that cannot say is left alone"
    );
}

#[tokio::test]
async fn crawl_cuts_endless_and_compressed_pages() {
    static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..5_000 {
            packer.write_all(&[b'y'; 10_000]).unwrap();
        }
        packer.finish().unwrap()
    });
    // Packed before the crawl begins, because a page must arrive within a time limit.
    LazyLock::force(&BOMB);
    let site = Site::new(|path, stream| match path {
        "/endless" => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
            )?;
            loop {
                stream.write_all(&[b'x'; 8192])?;
            }
        }
        "/bomb" => reply(
            stream,
            "200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip",
            &BOMB,
        ),
        _ => reply(stream, "404 Not Found", b""),
    });
    for path in ["/endless", "/bomb"] {
        let page = read_page(site.url(path)).await.unwrap().pages.remove(0);
        assert!(
            page.cut && page.text.len() <= 5 << 20,
            "{path}: {}",
            page.text.len()
        );
    }
    assert_eq!(
        read_page(site.url("/missing")).await.unwrap_err().code(),
        "http_status"
    );
}

#[tokio::test]
async fn crawl_accepts_a_wrong_charset_and_rejects_data() {
    let site = Site::new(|path, stream| match path {
        "/wrong" => reply(
            stream,
            "200 OK\r\ncontent-type: text/html; charset=utf-8",
            b"<p>caf\xE9 and more",
        ),
        "/unknown" => reply(
            stream,
            "200 OK\r\ncontent-type: text/html; charset=klingon",
            b"<p>plain and more",
        ),
        "/pdf" => reply(
            stream,
            "200 OK\r\ncontent-type: application/pdf",
            b"%PDF-1.7",
        ),
        _ => reply(stream, "404 Not Found", b""),
    });
    for path in ["/wrong", "/unknown"] {
        assert!(
            read_page(site.url(path)).await.unwrap().pages[0]
                .text
                .contains("and more"),
            "{path}"
        );
    }
    let error = read_page(site.url("/pdf")).await.unwrap_err().to_string();
    assert!(error.contains("`application/pdf`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn crawl_gives_up_on_a_silent_server() {
    // Accepts connections and never answers. The paused clock advances by itself while all tasks
    // wait.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let held = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            all.push(stream);
        }
    });
    let error = read_page(url).await.unwrap_err();
    assert_eq!(error.code(), "unreachable", "{error}");
    held.abort();
}

#[tokio::test]
async fn crawl_stops_at_its_bounds() {
    let site = Site::new(|path, stream| {
        if path == "/robots.txt" {
            return reply(stream, "404 Not Found", b"");
        }
        let number: u32 = path.trim_start_matches("/p").parse().unwrap_or(0);
        let links = [1, 2, 3]
            .map(|step| format!("<a href='/p{}'>next</a> ", number * 3 + step))
            .concat();
        html(stream, &format!("<p>page {number} {links}"))
    });
    let go = async |pages, depth| {
        crawl_site(
            &fetcher(&["127.0.0.1"]),
            site.url("/"),
            Bounds { pages, depth },
            read_place(),
        )
        .await
        .unwrap()
    };
    let few = go(3, 3).await;
    assert_eq!((few.pages.len(), few.left > 0), (3, true));
    let near = go(20, 1).await;
    assert_eq!(
        (near.pages.len(), near.left),
        (4, 0),
        "the first page and those it names"
    );
}

/// Reads every PDF as one fixed text.
struct OneText;

impl DocumentReader for OneText {
    fn detect_format(&self, _: &Path, bytes: &[u8]) -> Option<DocumentFormat> {
        bytes.starts_with(b"%PDF-").then_some(DocumentFormat {
            id: "pdf",
            name: "a PDF document",
        })
    }

    fn is_likely_document(&self, _: &Path) -> bool {
        false
    }

    fn read_text(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError> {
        match source.bytes {
            b"%PDF-locked" => Err(DocumentError::Encrypted),
            _ => Ok(DocumentText {
                text: "The manual.".to_owned(),
                truncated: false,
            }),
        }
    }
}

#[tokio::test]
async fn crawl_reads_a_pdf_as_text() {
    let site = Site::new(|path, stream| match path {
        "/manual" => reply(
            stream,
            "200 OK\r\ncontent-type: application/octet-stream",
            b"%PDF-1.7 ...",
        ),
        "/locked.pdf" => reply(
            stream,
            "200 OK\r\ncontent-type: application/pdf",
            b"%PDF-locked",
        ),
        "/fake.pdf" => reply(
            stream,
            "200 OK\r\ncontent-type: text/html",
            b"<p>About %PDF- files",
        ),
        _ => reply(stream, "404 Not Found", b""),
    });
    let bounds = Bounds { pages: 1, depth: 1 };
    let reads = fetcher(&["127.0.0.1"]).with_documents(Arc::new(OneText));
    let page = crawl_site(&reads, site.url("/manual"), bounds, read_place())
        .await
        .unwrap();
    assert_eq!(page.pages[0].text, "The manual.");
    let error = crawl_site(&reads, site.url("/locked.pdf"), bounds, read_place())
        .await
        .unwrap_err();
    assert!(
        error.code() == "document" && error.to_string().contains("it has a password"),
        "{error}"
    );
    let page = crawl_site(&reads, site.url("/fake.pdf"), bounds, read_place())
        .await
        .unwrap();
    assert!(
        page.pages[0].text.contains("About"),
        "a page is a page, whatever its name"
    );
    // Without a document reader, the file is no page.
    let error = crawl_site(
        &fetcher(&["127.0.0.1"]),
        site.url("/locked.pdf"),
        bounds,
        read_place(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.code(), "not_text");
}

#[tokio::test]
async fn crawl_uses_a_proxy_but_reaches_no_private_host_through_it() {
    let proxy = Site::new(|_, stream| html(stream, "<p>through the proxy"));
    let bounds = Bounds { pages: 1, depth: 1 };
    let proxies = |except: Option<&str>| WebProxies {
        http: Some(format!("http://{}", proxy.address)),
        https: None,
        except: except.map(str::to_owned),
    };
    let through = fetcher(&["docs.example"]).with_proxies(proxies(None));
    let page = crawl_site(
        &through,
        "http://docs.example/a".parse().unwrap(),
        bounds,
        read_place(),
    )
    .await
    .unwrap();
    assert!(page.pages[0].text.contains("through the proxy"));
    assert_eq!(
        proxy.asked(),
        ["http://docs.example/robots.txt", "http://docs.example/a"]
    );
    for private in [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://wiki/",
        "http://db.internal/",
        "http://[::1]/",
    ] {
        let error = crawl_site(&through, private.parse().unwrap(), bounds, read_place())
            .await
            .unwrap_err();
        assert_eq!(error.code(), "private_address", "{private}: {error}");
    }
    // Excepted hosts are reached directly, and their addresses are checked.
    let direct = fetcher(&[]).with_proxies(proxies(Some("localhost")));
    let error = crawl_site(
        &direct,
        "http://localhost/".parse().unwrap(),
        bounds,
        read_place(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.code(), "private_address");
    assert_eq!(proxy.asked().len(), 2);
}
