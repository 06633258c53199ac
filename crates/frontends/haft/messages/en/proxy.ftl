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
proxy-priced = {" "}({ $priced } of { $requests ->
    [one] 1 request
   *[other] { $requests } requests
 } priced)
