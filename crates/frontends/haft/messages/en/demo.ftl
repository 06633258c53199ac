# `haft demo`.

demo-project = A small project with a bug, in { $project }. Its test says:
demo-task = The task: { $task }
demo-test-after = The test now says:
demo-kept = The sample project and its conversation are kept in { $folder }.
demo-tokens = Where the tokens of the last request went:
demo-usage =
    { $requests ->
        [one] 1 request
       *[other] { $requests } requests
    }: { $input } tokens in, { $cached } % of them from the cache, { $output } out
demo-cost = , ${ $cost } at the demo's made-up prices
demo-end = .
demo-no-folder = cannot create the sample project in `{ $folder }`: { $error }; set `TMPDIR` to a folder you can write to
demo-no-sandbox = The demo continues without one: its commands and its sample project are its own.
demo-keys = Enter = yes, n = no:{" "}
demo-answered = Nobody can be asked here, so the demo answers: yes.
demo-refused = You refused the edit, so nothing was changed.
