//! Reads several pages of one host, following links from a first page.

use std::collections::{HashMap, HashSet, VecDeque};

use url::Url;

use crate::fetch::{Fetcher, ReadContext, WebError};
use crate::page::WebPage;

/// The limits of a crawl: the number of pages, and the number of links that may be followed in a
/// row from the first page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) pages: usize,
    pub(crate) depth: usize,
}

/// The pages that a crawl read, and those that it could not or did not read.
#[derive(Debug, Default)]
pub(crate) struct Crawled {
    pub(crate) pages: Vec<WebPage>,
    /// Pages that could not be read, each with the reason.
    pub(crate) failed: Vec<(Url, WebError)>,
    /// The number of linked pages that were not read because the page limit was reached.
    pub(crate) left: usize,
}

/// Reads the page `first`, and then pages of its host that can be reached from it through links.
/// Fails only if the first page cannot be read.
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
        // Failed pages count too, so that a site with many dead links cannot make a crawl long.
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
