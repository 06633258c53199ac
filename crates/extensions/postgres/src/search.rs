//! Full-text search on the server. The terms come from [`haft_store::backend`] and are stored as a
//! `tsvector` built here, so that the server's language settings do not matter.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use haft_store::SearchHit;
use haft_store::backend::{
    Idle, LISTED_COLUMNS, MessageSpan, OwnedScope, SearchItem, extract_body_terms, extract_terms,
    name_snippet,
};
use haft_types::ContentHash;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::failure::PostgresFailure;
use crate::read::{ListedColumns, NAMESPACE_PARAMETER, decode_listed_conversation};
use crate::{lineage, session};

/// The maximum number of messages indexed in one transaction.
const BATCH_SIZE: u32 = 500;
/// The maximum number of search candidates read by one query.
const CANDIDATES_PER_QUERY: u32 = 200;
/// The highest position that the server supports for a term in an entry.
const MAX_POSITION: usize = 16_383;
/// The maximum number of terms in one index entry. The server limits an entry, including the
/// positions of its terms, to one megabyte.
const MAX_TERMS: usize = 20_000;

/// Indexes at most [`BATCH_SIZE`] messages and revisions that are not indexed yet. Several
/// processes may do this at the same time.
pub(crate) async fn index_batch(connection: &mut PgConnection) -> Result<Idle, PostgresFailure> {
    session::run_transaction(connection, session::BEGIN_WRITE, index_messages).await
}

async fn index_messages(connection: &mut PgConnection) -> Result<Idle, PostgresFailure> {
    let sql = include_str!("statements/fill.sql");
    let query = sqlx::query_as(sql).bind(i64::from(BATCH_SIZE));
    let taken: Vec<(i64, String, String)> = query.fetch_all(&mut *connection).await?;
    let entry = |(key, body, namespace): &(i64, String, String)| {
        (
            *key,
            format!(
                "{}'{}'",
                to_tsvector(&extract_body_terms(body)),
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
    let names = index_names(connection).await?;
    Ok(if keys.len().max(names) == BATCH_SIZE as usize {
        Idle::More
    } else {
        Idle::Done
    })
}

/// Indexes the names and descriptions of at most [`BATCH_SIZE`] conversations, and returns the
/// number of conversations.
async fn index_names(connection: &mut PgConnection) -> Result<usize, PostgresFailure> {
    let sql = include_str!("statements/fill_names.sql");
    let query = sqlx::query_as(sql).bind(i64::from(BATCH_SIZE));
    let taken: Vec<(i64, String, String)> = query.fetch_all(&mut *connection).await?;
    let entry = |(key, name, description): &(i64, String, String)| {
        (
            *key,
            to_tsvector(&extract_terms(&format!("{name}: {description}"))),
        )
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

/// Returns the term that all entries of a namespace contain. The term begins with `@`, so it cannot
/// clash with a term from a text.
fn namespace_term(namespace: &str) -> String {
    format!("@{}", ContentHash::from_content(namespace.as_bytes()))
}

/// Formats terms with their positions as a `tsvector`. Nothing needs to be escaped, because terms
/// contain only letters and digits.
fn to_tsvector(terms: &str) -> String {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, term) in terms.split_whitespace().take(MAX_TERMS).enumerate() {
        places
            .entry(term)
            .or_default()
            .push((index + 1).min(MAX_POSITION));
    }
    let mut vector = String::new();
    for (term, places) in places {
        let _ = write!(vector, "'{term}':");
        // The server keeps at most 255 positions of a term.
        for (index, place) in places.iter().take(255).enumerate() {
            let _ = write!(vector, "{}{place}", if index == 0 { "" } else { "," });
        }
        vector.push(' ');
    }
    vector
}

/// Formats search items as a `tsquery` that matches entries containing all of them.
fn to_tsquery(items: &[SearchItem]) -> String {
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

/// Returns the conversations whose name or description contains all items, followed by the messages
/// that contain all items. In both groups, the best match comes first.
pub(crate) async fn search_conversations(
    connection: &mut PgConnection,
    items: &[SearchItem],
    place: &OwnedScope,
    limit: usize,
) -> Result<Vec<SearchHit>, PostgresFailure> {
    let mut hits = search_names(connection, items, place, limit).await?;
    let sql = include_str!("statements/search.sql");
    let wanted = to_tsquery(items);
    let within = place.namespace().map_or_else(String::new, |namespace| {
        format!(" & '{}'", namespace_term(namespace))
    });
    let mut seen = HashSet::new();
    let mut offset = 0_i64;
    while hits.len() < limit {
        let query = sqlx::query_as(sql)
            .bind(&wanted)
            .bind(i64::from(CANDIDATES_PER_QUERY))
            .bind(offset)
            .bind(&within);
        let candidates: Vec<(i64, i64, i64)> = query.fetch_all(&mut *connection).await?;
        for (_, source, position) in &candidates {
            if hits.len() >= limit {
                break;
            }
            // A message and its revisions have separate entries.
            if seen.insert((*source, *position)) {
                hits.extend(load_hit(connection, (*source, *position), items, place).await?);
            }
        }
        if candidates.len() < CANDIDATES_PER_QUERY as usize {
            break;
        }
        offset += i64::from(CANDIDATES_PER_QUERY);
    }
    Ok(hits)
}

/// Loads a message as a search hit. The hit belongs to the conversation in which the message was
/// created, if that is in the scope, or else to a fork of it that is in the scope.
async fn load_hit(
    connection: &mut PgConnection,
    (source, position): (i64, i64),
    items: &[SearchItem],
    place: &OwnedScope,
) -> Result<Option<SearchHit>, PostgresFailure> {
    let sql = format!(
        "SELECT key FROM conversations
         WHERE {} AND key IN (SELECT conversation FROM lineage WHERE source = $2 AND last_position >= $3)
         ORDER BY key = $2 DESC, updated_at DESC LIMIT 1",
        place.sql_condition(NAMESPACE_PARAMETER)
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
    let conversation = decode_listed_conversation(row)?;
    let span = MessageSpan::single(position);
    let message = lineage::read_messages(connection, (key, &conversation.id), span)
        .await?
        .pop();
    Ok(message.and_then(|message| SearchHit::for_message(conversation, &message, items)))
}

/// Returns the conversations whose name or description contains all items.
async fn search_names(
    connection: &mut PgConnection,
    items: &[SearchItem],
    place: &OwnedScope,
    limit: usize,
) -> Result<Vec<SearchHit>, PostgresFailure> {
    type Row = (String, String, String, String, String, i64, String);
    let sql = format!(
        "SELECT {LISTED_COLUMNS}, description FROM conversations JOIN names ON names.conversation = key
         WHERE {} AND terms @@ $2::tsquery ORDER BY updated_at DESC, key DESC",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let query = sqlx::query_as(AssertSqlSafe(sql))
        .bind(place.namespace())
        .bind(to_tsquery(items));
    let rows: Vec<Row> = query.fetch_all(connection).await?;
    let mut hits = Vec::new();
    for (id, name, namespace, created_at, updated_at, messages, description) in rows {
        if hits.len() >= limit {
            break;
        }
        if let Some(snippet) = name_snippet(&name, &description, items) {
            let conversation = decode_listed_conversation((
                id, name, namespace, created_at, updated_at, messages,
            ))?;
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
    fn vector_and_tsquery_use_postgres_syntax() {
        assert_eq!(to_tsvector("the login the"), "'login':2 'the':1,3 ");
        assert_eq!(
            to_tsquery(&parse_query("\"exact words\" deplo* 測試中").unwrap()),
            "('exact' <-> 'words') & ('deplo':*) & ('測試' <-> '試中')"
        );
    }
}
