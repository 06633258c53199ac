//! Full-text search on the server: terms as [`haft_store::backend`] makes them, in a `tsvector` of
//! our own making, so that the server's language settings do not matter.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use haft_store::SearchHit;
use haft_store::backend::{
    Idle, LISTED_COLUMNS, MessageSpan, OwnedScope, SearchItem, name_snippet, terms, terms_of_body,
};
use haft_types::ContentHash;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::failure::PostgresFailure;
use crate::read::{ListedColumns, PARAMETER, listed};
use crate::{lineage, session};

/// Messages in one transaction.
const BATCH: u32 = 500;
/// Candidates read at once.
const CANDIDATES: u32 = 200;
/// The server takes no position beyond this.
const LAST_POSITION: usize = 16_383;
/// The server takes no entry longer than a megabyte; the positions of terms take room as well.
const MOST_TERMS: usize = 20_000;

/// Indexes at most [`BATCH`] messages and revisions. Others may be doing the same with others.
pub(crate) async fn fill(connection: &mut PgConnection) -> Result<Idle, PostgresFailure> {
    session::transaction(connection, session::WRITING, fill_a_batch).await
}

async fn fill_a_batch(connection: &mut PgConnection) -> Result<Idle, PostgresFailure> {
    let sql = include_str!("statements/fill.sql");
    let query = sqlx::query_as(sql).bind(i64::from(BATCH));
    let taken: Vec<(i64, String, String)> = query.fetch_all(&mut *connection).await?;
    let entry = |(key, body, namespace): &(i64, String, String)| {
        (
            *key,
            format!(
                "{}'{}'",
                vector(&terms_of_body(body)),
                namespace_term(namespace)
            ),
        )
    };
    let (keys, entries): (Vec<_>, Vec<_>) = taken.iter().map(entry).unzip();
    let sql = "INSERT INTO entries
               SELECT message, entry::tsvector FROM unnest($1::bigint[], $2::text[]) AS new (message, entry)
               ON CONFLICT DO NOTHING";
    sqlx::query(sql)
        .bind(&keys)
        .bind(entries)
        .execute(&mut *connection)
        .await?;
    let names = fill_names(connection).await?;
    Ok(if keys.len().max(names) == BATCH as usize {
        Idle::More
    } else {
        Idle::Done
    })
}

/// Indexes at most [`BATCH`] names, and tells how many there were.
async fn fill_names(connection: &mut PgConnection) -> Result<usize, PostgresFailure> {
    let sql = include_str!("statements/fill_names.sql");
    let query = sqlx::query_as(sql).bind(i64::from(BATCH));
    let taken: Vec<(i64, String, String)> = query.fetch_all(&mut *connection).await?;
    let entry = |(key, name, description): &(i64, String, String)| {
        (*key, vector(&terms(&format!("{name}: {description}"))))
    };
    let (keys, entries): (Vec<_>, Vec<_>) = taken.iter().map(entry).unzip();
    let sql = "INSERT INTO names
               SELECT conversation, entry::tsvector FROM unnest($1::bigint[], $2::text[]) AS new (conversation, entry)
               ON CONFLICT (conversation) DO UPDATE SET terms = excluded.terms";
    sqlx::query(sql)
        .bind(&keys)
        .bind(entries)
        .execute(connection)
        .await?;
    Ok(keys.len())
}

/// The term of all entries of a namespace. No word of a text begins so.
fn namespace_term(namespace: &str) -> String {
    format!("@{}", ContentHash::of(namespace.as_bytes()))
}

/// Terms with their places, as the server writes them. Terms hold letters and digits only, so
/// quotes are all they need.
fn vector(terms: &str) -> String {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, term) in terms.split_whitespace().take(MOST_TERMS).enumerate() {
        places
            .entry(term)
            .or_default()
            .push((index + 1).min(LAST_POSITION));
    }
    let mut vector = String::new();
    for (term, places) in places {
        let _ = write!(vector, "'{term}':");
        // More than 255 places of one term are not kept by the server either.
        for (index, place) in places.iter().take(255).enumerate() {
            let _ = write!(vector, "{}{place}", if index == 0 { "" } else { "," });
        }
        vector.push(' ');
    }
    vector
}

/// The items in the server's language.
fn tsquery(items: &[SearchItem]) -> String {
    let phrase = |item: &SearchItem| {
        let last = item.terms.len() - 1;
        let term = |(index, term): (usize, &String)| {
            format!(
                "'{term}'{}",
                if item.prefix && index == last {
                    ":*"
                } else {
                    ""
                }
            )
        };
        format!(
            "({})",
            item.terms
                .iter()
                .enumerate()
                .map(term)
                .collect::<Vec<_>>()
                .join(" <-> ")
        )
    };
    items.iter().map(phrase).collect::<Vec<_>>().join(" & ")
}

/// The messages that hold all items, best first; before them the conversations whose name or
/// description do.
pub(crate) async fn search(
    connection: &mut PgConnection,
    items: &[SearchItem],
    place: &OwnedScope,
    limit: usize,
) -> Result<Vec<SearchHit>, PostgresFailure> {
    let mut hits = named(connection, items, place, limit).await?;
    let sql = include_str!("statements/search.sql");
    let wanted = tsquery(items);
    let within = place.namespace().map_or_else(String::new, |namespace| {
        format!(" & '{}'", namespace_term(namespace))
    });
    let mut seen = HashSet::new();
    let mut offset = 0_i64;
    while hits.len() < limit {
        let query = sqlx::query_as(sql)
            .bind(&wanted)
            .bind(i64::from(CANDIDATES))
            .bind(offset)
            .bind(&within);
        let candidates: Vec<(i64, i64, i64)> = query.fetch_all(&mut *connection).await?;
        for (_, source, position) in &candidates {
            if hits.len() >= limit {
                break;
            }
            // The message and its revisions are entries of their own.
            if seen.insert((*source, *position)) {
                hits.extend(hit(connection, (*source, *position), items, place).await?);
            }
        }
        if candidates.len() < CANDIDATES as usize {
            break;
        }
        offset += i64::from(CANDIDATES);
    }
    Ok(hits)
}

/// The message at this place as a conversation of the scope has it: its own one if that is in
/// scope, else a fork of it.
async fn hit(
    connection: &mut PgConnection,
    (source, position): (i64, i64),
    items: &[SearchItem],
    place: &OwnedScope,
) -> Result<Option<SearchHit>, PostgresFailure> {
    let sql = format!(
        "SELECT key FROM conversations
         WHERE {} AND key IN (SELECT conversation FROM lineage WHERE source = $2 AND last_position >= $3)
         ORDER BY key = $2 DESC, updated_at DESC LIMIT 1",
        place.condition(PARAMETER)
    );
    let query = sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(place.namespace())
        .bind(source)
        .bind(position);
    let Some(key) = query.fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    let sql = format!("SELECT {LISTED_COLUMNS} FROM conversations WHERE key = $1");
    let row: ListedColumns = sqlx::query_as(AssertSqlSafe(sql))
        .bind::<i64>(key)
        .fetch_one(&mut *connection)
        .await?;
    let conversation = listed(row)?;
    let span = MessageSpan::at(position);
    let message = lineage::messages(connection, (key, &conversation.id), span)
        .await?
        .pop();
    Ok(message.and_then(|message| SearchHit::in_message(conversation, &message, items)))
}

/// The conversations whose name or description hold every item.
async fn named(
    connection: &mut PgConnection,
    items: &[SearchItem],
    place: &OwnedScope,
    limit: usize,
) -> Result<Vec<SearchHit>, PostgresFailure> {
    type Row = (String, String, String, String, String, i64, String);
    let sql = format!(
        "SELECT {LISTED_COLUMNS}, description FROM conversations JOIN names ON names.conversation = key
         WHERE {} AND terms @@ $2::tsquery ORDER BY updated_at DESC, key DESC",
        place.condition(PARAMETER)
    );
    let query = sqlx::query_as(AssertSqlSafe(sql))
        .bind(place.namespace())
        .bind(tsquery(items));
    let rows: Vec<Row> = query.fetch_all(connection).await?;
    let mut hits = Vec::new();
    for (id, name, namespace, created_at, updated_at, messages, description) in rows {
        if hits.len() >= limit {
            break;
        }
        if let Some(snippet) = name_snippet(&name, &description, items) {
            let conversation = listed((id, name, namespace, created_at, updated_at, messages))?;
            hits.push(SearchHit {
                conversation,
                message: None,
                snippet,
            });
        }
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use haft_store::backend::parse_query;

    use super::*;

    #[test]
    fn the_servers_own_language() {
        assert_eq!(vector("the login the"), "'login':2 'the':1,3 ");
        assert_eq!(
            tsquery(&parse_query("\"exact words\" deplo* 測試中").unwrap()),
            "('exact' <-> 'words') & ('deplo':*) & ('測試' <-> '試中')"
        );
    }
}
