//! What all workers together may spend in a day.

/// What tasks may spend in a day, all workers together. Days are those of UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct SpendingLimit {
    /// Whose tasks; all of them when empty.
    pub label: String,
    /// Money.
    pub usd: Option<f64>,
    /// Tokens.
    pub tokens: Option<i64>,
}

/// The limits as columns of a statement: labels, money, tokens.
pub(super) type LimitColumns = (Vec<String>, Vec<Option<f64>>, Vec<Option<i64>>);

pub(super) fn columns(limits: &[SpendingLimit]) -> LimitColumns {
    let mut columns = LimitColumns::default();
    for limit in limits {
        columns.0.push(limit.label.clone());
        columns.1.push(limit.usd);
        columns.2.push(limit.tokens);
    }
    columns
}
