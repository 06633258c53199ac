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
