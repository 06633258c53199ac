# `haft proxy`.

proxy-cannot-listen = cannot listen on `{ $address }`: { $error }; `--port 0` chooses a free port
proxy-cannot-start = cannot start `{ $program }`: { $error }
proxy-listening =
    Recording what passes http://{ $address }. Point an agent at it:
      ANTHROPIC_BASE_URL=http://{ $address }
      OPENAI_BASE_URL=http://{ $address }/v1
      GOOGLE_GEMINI_BASE_URL=http://{ $address }
    `haft conversations list --namespace proxy` lists what was recorded. Press Ctrl-C to stop.
proxy-request = { $conversation } #{ $number } { $model }: { $tokens } tokens, { $how }; cached { $predicted } predicted, { $billed }; { $cost }
proxy-first = first request
proxy-extends = extends the one before
proxy-breaks = differs from segment { $at } of { $segments } ({ $owner }): { $cause }, { $tokens } tokens again
proxy-billed = { $cached } of { $input } billed
proxy-not-billed = not reported
proxy-cost = { $cost }, append-only { $append_only }
proxy-units = { $sent } units, append-only { $append_only } (no price known; 1 unit is 1 input token at full price)
proxy-no-cost = cost unknown
proxy-side = {" "}(side request)
proxy-cut = {" "}(the reply was cut)
proxy-status = {" "}(status { $status })
proxy-passed = passed { $method } { $path }: { $status }
proxy-not-recorded = warning: passed, but not recorded: { $reason }
proxy-total = { $requests ->
    [one] 1 request
   *[other] { $requests } requests
 }, { $breaks ->
    [one] 1 break
   *[other] { $breaks } breaks
 }; { $uncached } input tokens not read from the cache, an append-only client { $append_only } (ratio { $ratio }); { $cost }
proxy-conversation-total = { $conversation }: { $total }
proxy-side-total = { $requests ->
    [one] 1 side request
   *[other] { $requests } side requests
 }: { $uncached } input tokens not read from the cache; { $cost }
proxy-run-total = in all: { $requests ->
    [one] 1 request
   *[other] { $requests } requests
 }, { $breaks ->
    [one] 1 break
   *[other] { $breaks } breaks
 }; { $cost }
proxy-priced = {" "}({ $priced } of { $requests } requests priced)
proxy-no-agents = `proxy.save.agents` allows no agent: list those whose requests may be rewritten, such as `haft config set proxy.save.agents '["codex"]'`
proxy-agent-not-allowed = requests of `{ $agent }` may not be rewritten: add `{ $agent }` to `proxy.save.agents` in your configuration, or leave out `--save`
proxy-agent-cannot-read = the tools of `{ $agent }` cannot be relied on to open files in haft's state folder: set `proxy.save.spill_dir` to a folder that they can read
proxy-spill-relative = `proxy.save.spill_dir` is `{ $folder }`: it must be an absolute path
proxy-cleared = { $conversation }: { $results ->
    [one] 1 old result of { $agent } is
   *[other] { $results } old results of { $agent } are
 } left out from now on, ≈{ $tokens } tokens a request; the texts are in { $folder }
proxy-would-clear = { $conversation }: { $results ->
    [one] 1 old result of { $agent } would be
   *[other] { $results } old results of { $agent } would be
 } left out from now on, ≈{ $tokens } tokens a request
proxy-budget-too-small = warning: nothing is left out: `proxy.save.budget` is { $budget } tokens, and the fixed prefix with the results that stay has { $needed }; set at least this
proxy-text-moved = { $agent } moves a text with every request; from now on it is sent last: { $opening }
proxy-not-allowed = requests of `{ $agent }` pass unchanged: `proxy.save.agents` does not list it
proxy-not-stored = warning: nothing more is left out, because this cannot be stored: { $reason }
proxy-rewritten = { $rewritten } of { $requests ->
    [one] 1 request was rewritten
   *[other] { $requests } requests were rewritten
 }
proxy-would-rewrite = { $rewritten } of { $requests ->
    [one] 1 request would have been rewritten
   *[other] { $requests } requests would have been rewritten
 }
proxy-unchanged = { $count ->
    [one] 1 request passed unchanged
   *[other] { $count } requests passed unchanged
 }: { $reason }
proxy-reason-unreadable = not a request that can be rewritten
proxy-reason-stored-response = it continues a response that is stored at the provider
proxy-reason-stored-conversation = the conversation is stored at the provider
proxy-reason-compaction = it contains an item that the provider has compacted
proxy-reason-context-management = the provider clears results itself (`context_management`)
proxy-reason-named-cache = it refers to a named cache
proxy-reason-no-consent = its agent is not allowed in `proxy.save`
proxy-saved-money = input saved: ≈{ $saved } of { $received } ({ $percent } %) in { $conversations ->
    [one] 1 conversation
   *[other] { $conversations } conversations
 }; estimated from the requests at list prices, with repeated text read from the cache and 4 bytes a token
proxy-saved-units = input saved: ≈{ $saved } of { $received } tokens at the full price ({ $percent } %) in { $conversations ->
    [one] 1 conversation
   *[other] { $conversations } conversations
 }; estimated from the requests, with repeated text read from the cache at a tenth of the price and 4 bytes a token
proxy-priced = {" "}({ $priced } of { $requests ->
    [one] 1 request
   *[other] { $requests } requests
 } priced)
