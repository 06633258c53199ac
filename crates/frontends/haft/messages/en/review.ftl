# `haft review`.

review-untrusted = `{ $root }` is not trusted, so git does not run there; `haft trust` trusts it
review-nothing = there is nothing to review: { $what } is empty
