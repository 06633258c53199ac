//! The daily spending limits of all workers together.

/// A daily spending limit for tasks, applied to all workers together. Days are in UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct SpendingLimit {
    /// The label of the limited tasks. If empty, the limit applies to all tasks.
    pub label: String,
    /// The limit in US dollars, or `None` for no limit.
    pub usd: Option<f64>,
    /// The limit in tokens, or `None` for no limit.
    pub tokens: Option<i64>,
}

/// The spending limits as parameters of an SQL statement: one list of labels, one of amounts in US
/// dollars, one of token counts.
pub(super) type LimitColumns = (Vec<String>, Vec<Option<f64>>, Vec<Option<i64>>);

pub(super) fn to_limit_columns(limits: &[SpendingLimit]) -> LimitColumns {
    let mut columns = LimitColumns::default();
    for limit in limits {
        columns.0.push(limit.label.clone());
        columns.1.push(limit.usd);
        columns.2.push(limit.tokens);
    }
    columns
}
