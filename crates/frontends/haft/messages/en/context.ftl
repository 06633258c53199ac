# `haft context`: requests, pictures, tests, breaks.

context-not-a-number = `{ $text }` is not the number of a request
context-request-twice = give `--request` or numbers, not both
context-first-request = request 1 has no request before it to compare with
context-file-unreadable = cannot read the conversation `{ $shown }`: { $error }
context-file-not-conversation = `{ $shown }` is not a conversation: { $problem }
context-file-many-lines =
    { $lines ->
        [one] it holds 1 line of JSON; give one of them
       *[other] it holds { $lines } lines of JSON; give one of them
    }
context-file-empty = it holds no messages
context-no-requests = conversation `{ $id }` has no requests yet
context-only-next = `--model` and `--api` are for requests not sent yet; add `--next`, or use `render`
context-no-imports = `--from-file` is not in this build; build it with `--features imports`
context-no-model = no model is chosen; use `-m provider/model` or `--api NAME`, or set `model` in config.toml
context-waits-for-user = the conversation waits for the user; `{ $placeholder }` stands for the next input, `--input TEXT` sets it
context-tools-price = tools come first in a request: the next request of `{ $name }` has { $quote } to write again
context-recall-partial = , partly done
context-recall-failed = , which failed
context-recall-result = the result of { $tool }{ $how }
context-recall-heading = message { $id } of { $at }: { $what }
context-secrets-masked = the body contains secrets; they are masked here
context-request-of = request { $number } of { $requests } in `{ $conversation }`
context-picture-unwritable = cannot write `{ $path }`: { $error }
context-picture-written =
    wrote a picture of { $count ->
        [one] 1 request
       *[other] { $count } requests
    } to { $path }
context-report-reserve = output reserve
context-report-estimate = The request takes { $used } tokens by estimate
context-report-no-reply = ; its reply is not known.
context-report-reply =
    , { $all_input } by the provider's count:
    { $cached_input } read from the cache ({ $cached_share }), { $cache_write } written to it, { $input } neither; { $output } of output{ $cost }.
context-request-place = {" "}of { $requests } in `{ $conversation }`
context-cache-boundary = , cache boundary
context-test-no-folder = there are no context tests: `{ $folder }`: { $error }
context-test-no-files = there are no context tests in `{ $folder }`: no file ends in .toml
context-test-empty = `{ $path }` states nothing: it needs a `[[rule]]`, a `[prefix]`, a `[[replay]]` or a `[[run]]`
context-test-unreadable = cannot read `{ $path }`: { $error }
context-test-no-claim = the rule for `{ $touched }` says neither `sends` nor `not_sends`
context-test-blanks = `touched = "{ $touched }"`: a path with spaces cannot be checked
context-test-does-not-send = does not send
context-test-sent = it is sent
context-test-no-file = there is no such file
context-test-not-sent = it is not sent
context-test-prefix = the fixed prefix takes at most { $limit } tokens ({ $protocol })
context-test-prefix-parts = { $tokens }: { $system } system, { $tools } tools, { $documents } documents
context-test-breaks-at-most = {" "}at most { $most } times
context-test-breaks-causes = {" "}only because { $causes }
context-test-breaks = { $shown } breaks the prefix{ $limit }{ $only }
context-test-run = { $shown } replays as recorded
context-test-no-break = no break
context-test-no-lab = `{ $root }`: replays such as `{ $shown }` are not in this build; use `--features lab`
context-why-none = No breaks: each of the { $requests } of `{ $conversation }` begins with the one before.
context-why-cost = , { $cost } more than from the cache
context-why-place = segment { $at }, { $owner } { $message }
context-why-tokens = { $tokens } tokens
context-why-forecast-tokens = ≈{ $tokens } tokens
context-why-forecast = Figures with ≈ are forecasts, because no bill is known for the request.
context-why-unexplained = Nothing explains the break at request { $number }: that is a bug in haft. `haft context diff` shows what changed.
context-why-sum = { $breaks } in { $requests }: { $tokens } tokens were resent{ $cost }.
context-replaced-section = section `{ $section }` of the system prompt is replaced by { $file }
context-show-heading = { $request }: { $model } in { $api }, { $tokens } tokens, { $tools } with { $tool_tokens } tokens
context-report-heading = { $title }: { $model } in { $api }
context-report-remaining = remaining
context-report-window = window
context-report-end = .
context-report-settings = Old results are pruned above { $tokens } tokens (`safe_zone` { $zone }) to { $to } of it, all but the newest { $keep }, and compressed `{ $compress }`: { $reason }.
context-test-sends = sends
context-test-found-breaks = { $count ->
    [one] 1 break
   *[other] { $count } breaks
 }: { $causes }
