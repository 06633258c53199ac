# `haft review`.

review-untrusted = `{ $root }` is not trusted, and git is not run in it; `haft trust` trusts it
review-nothing = there is nothing to review: { $what } is empty
