//! `haft context diff`: compares two requests by segment.
//!
//! Prints the prefix that both requests share, then the removed (−) and added (+) segments.
//! Unchanged segments behind a change are only counted: they are sent again.

use haft_inspect::RequestDiff;

use super::opened_log::open_log;
use crate::commands::context::DiffArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &DiffArgs) -> anyhow::Result<()> {
    let asked = DiffTarget::from_args(args)?;
    let log = open_log(haft, asked.conversation, &args.common).await?;
    let (from, to) = asked.request_pair(log.requests)?;
    let old = log.request(Some(from)).await?;
    let new = log.request(Some(to)).await?;
    let masker = haft.masker();
    let difference = RequestDiff::new(&old, &new, &masker);
    if args.json {
        return output::print_json(&difference.to_json(&log.conversation.id, args.full));
    }
    output::print_text(&difference.to_text(args.full))
}

/// The conversation and the requests that the positional arguments name.
#[derive(Debug, PartialEq, Eq)]
struct DiffTarget<'a> {
    conversation: Option<&'a str>,
    numbers: Vec<u64>,
}

impl<'a> DiffTarget<'a> {
    fn from_args(args: &'a DiffArgs) -> anyhow::Result<Self> {
        // The eight characters of a short id can look like a number, but no conversation has that
        // many requests.
        const SHORT_ID_LEN: usize = 8;
        let (conversation, numbers) = match args.what.split_first() {
            Some((first, rest))
                if args.what.len() == 3
                    || first.len() >= SHORT_ID_LEN
                    || first.parse::<u64>().is_err() =>
            {
                (Some(first.as_str()), rest)
            }
            _ => (None, args.what.as_slice()),
        };
        let number = |text: &String| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| usage_error(text!("context-not-a-number", text)))
        };
        let mut numbers = numbers
            .iter()
            .map(number)
            .collect::<Result<Vec<u64>, _>>()?;
        match args.request {
            Some(_) if !numbers.is_empty() => {
                return Err(usage_error(text!("context-request-twice")));
            }
            Some(number) => numbers.push(number),
            None => {}
        }
        Ok(Self {
            conversation,
            numbers,
        })
    }

    fn request_pair(&self, requests: u64) -> anyhow::Result<(u64, u64)> {
        match self.numbers.as_slice() {
            [from, to, ..] => Ok((*from, *to)),
            [to] if *to > 1 => Ok((to - 1, *to)),
            [] if requests > 1 => Ok((requests - 1, requests)),
            [_] | [] => Err(usage_error(text!("context-first-request"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::Common;

    fn parse_target(
        what: &[&str],
        request: Option<u64>,
    ) -> anyhow::Result<(Option<String>, (u64, u64))> {
        let what = what.iter().map(|word| (*word).to_owned()).collect();
        let args = DiffArgs {
            what,
            request,
            full: false,
            json: false,
            common: Common::default(),
        };
        let asked = DiffTarget::from_args(&args)?;
        Ok((
            asked.conversation.map(str::to_owned),
            asked.request_pair(9)?,
        ))
    }

    #[test]
    fn diff_target_takes_numbers_as_requests() {
        assert_eq!(parse_target(&[], None).unwrap(), (None, (8, 9)));
        assert_eq!(parse_target(&["5"], None).unwrap(), (None, (4, 5)));
        assert_eq!(parse_target(&["2", "5"], None).unwrap(), (None, (2, 5)));
        assert_eq!(
            parse_target(&["fix it"], None).unwrap(),
            (Some("fix it".into()), (8, 9))
        );
        assert_eq!(
            parse_target(&["12345678", "5"], None).unwrap(),
            (Some("12345678".into()), (4, 5))
        );
        assert_eq!(
            parse_target(&["7", "2", "5"], None).unwrap(),
            (Some("7".into()), (2, 5))
        );
        assert_eq!(
            parse_target(&["fix it"], Some(3)).unwrap(),
            (Some("fix it".into()), (2, 3))
        );
    }

    #[test]
    fn diff_target_rejects_requests_that_cannot_be_compared() {
        for wrong in [vec!["1"], vec!["0", "3"], vec!["a name", "b"]] {
            assert!(parse_target(&wrong, None).is_err(), "{wrong:?}");
        }
        assert!(parse_target(&["2", "3"], Some(4)).is_err());
    }
}
