# `haft commit`.

commit-nothing = there is nothing to commit: no file that git knows has changed
commit-nothing-staged = nothing is staged; stage changes with `git add`, or commit every changed file with `haft commit -a`
commit-no-message = the model gave no message; nothing was committed
commit-cost = the message took { $tokens } tokens, ${ $money }
commit-cost-unknown = the message took { $tokens } tokens; the model has no price
commit-needs-yes = nothing was committed: nobody can be asked here, and `--yes` commits without asking
commit-ask = Commit with this message? [y/N]
commit-not-done = nothing was committed
