# `haft serve`.

serve-cannot-listen = cannot listen on `{ $address }`: { $error }; leave `--port` out to use a free port
serve-listening =
    { $url }
    Only this address, opened on this machine, shows the page. Press Ctrl+C to stop.
serve-cannot-open = cannot start `{ $program }`: { $error }; open the address yourself
serve-conversations = Conversations
serve-search = Search
serve-name = Name
serve-agent = Agent
serve-namespace = Namespace
serve-messages = Messages
serve-requests = Requests
serve-cost = Cost
serve-cached = From cache
serve-updated = Last used
serve-text = Text
serve-no-hits = Nothing was found.
serve-dialogue = Dialogue
serve-timeline = Timeline
serve-before = ← Previous
serve-after = Next →
serve-no-requests = No requests of this conversation were recorded: it was imported, or nothing was sent yet.
serve-request = Request
serve-sent = Sent
serve-model = Model
serve-tokens = Tokens
serve-break = Break
serve-request-of = request { $number } of { $requests }
serve-sent-to = Sent to { $model } ({ $api }) at { $time }: { $tokens } tokens, estimated.
serve-billed = Billed: { $input } input tokens, { $cached } of them read from the cache and { $written } written to it; { $output } output tokens{ $cost }.
serve-no-reply = No reply was recorded.
serve-no-break = It extends the request before, or is the first.
serve-why = Prefix broken: { $cause }; { $tokens } tokens sent again{ $cost }.
serve-segments = Segments
serve-layer = Layer
serve-owner = Owner
serve-state = Cache
serve-kept = as before
serve-new = new
serve-boundary = , boundary
serve-difference = Difference to the request before
serve-body = Body as it was sent ({ $bytes } bytes, keys masked)
