//! Crawls pages of one host, one after another, from a first page on.

use std::collections::{HashMap, HashSet, VecDeque};

use url::Url;

use crate::fetch::{Fetcher, ReadContext, WebError};
use crate::page::WebPage;

/// The limits of a crawl.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) pages: usize,
    pub(crate) depth: usize,
}

/// The result of a crawl.
#[derive(Debug, Default)]
pub(crate) struct Crawled {
    pub(crate) pages: Vec<WebPage>,
    /// Pages that could not be read, with the reasons.
    pub(crate) failed: Vec<(Url, WebError)>,
    /// The number of linked pages that were not read.
    pub(crate) left: usize,
}

/// Reads a page, and the pages on its host that it links to. Returns an error only if the first
/// page cannot be read.
pub(crate) async fn crawl_site(
    fetcher: &Fetcher,
    first: Url,
    bounds: Bounds,
    place: ReadContext<'_>,
) -> Result<Crawled, WebError> {
    let mut crawled = Crawled::default();
    let mut robots = HashMap::new();
    let mut seen = HashSet::from([first.clone()]);
    let mut waiting = VecDeque::from([(first, 0)]);
    while let Some((url, depth)) = waiting.pop_front() {
        // Failed pages count too, because a site of dead links must end.
        if crawled.pages.len() + crawled.failed.len() >= bounds.pages {
            crawled.left = waiting.len() + 1;
            break;
        }
        let read = match fetcher.fetch_page(&url, &mut robots).await {
            Ok(fetched) => fetcher.read_page(fetched, place).await,
            Err(error) => Err(error),
        };
        let page = match read {
            Ok(page) => page,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                crawled.failed.push((url, error));
                continue;
            }
        };
        if depth < bounds.depth {
            for link in &page.links {
                if seen.insert(link.clone()) {
                    waiting.push_back((link.clone(), depth + 1));
                }
            }
        }
        crawled.pages.push(page);
    }
    Ok(crawled)
}
