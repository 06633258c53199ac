# Requests of the log: notes, differences, pictures, counts.

inspect-requests-compared = request { $before } → { $after }: { $before_tokens } → { $after_tokens } tokens
inspect-model-changed = model: { $old_model } in { $old_api } → { $new_model } in { $new_api }
inspect-tools-changed = tools: { $tools }
inspect-tools-reordered = tools: reordered
inspect-diff-kept = { $segments }, { $tokens } tokens kept
inspect-diff-again = { $segments }, { $tokens } tokens unchanged but resent
inspect-diff-line = { $place } ({ $tokens } tokens) { $text }
inspect-no-other-change = Nothing else changed.
inspect-imported = This conversation was imported from { $agent }. Its requests are put together from its messages: the system prompt, the tools and the body as it was sent are not recorded.
inspect-imported-with-system = This conversation was imported from { $agent }. Its requests are put together from its messages: the tools and the body as it was sent are not recorded.
inspect-imported-no-body = There is no body to show. { $note }
inspect-unknown-request = there is no request { $number }; conversation `{ $id }` has { $requests }
inspect-encoding-unknown = how requests to `{ $model }` were encoded is not recorded; the current configuration is used
inspect-picture-title = { $name }: tokens of every request by layer
inspect-picture-window = , { $window } of the window
inspect-picture-summary = { $requests }, at most { $peak } tokens{ $share }, { $breaks } of the cached prefix
inspect-picture-request = request { $number }: { $tokens } tokens
inspect-picture-requests = requests { $first } to { $last }; shown is { $shown }
inspect-picture-layer = { $layer }: { $kept } kept, { $new } new
inspect-picture-cached = { $share } read from the cache
inspect-picture-break = break: { $cause }
inspect-picture-no-cause = break without a cause
inspect-picture-window-line = window
inspect-picture-zone-line = safe zone
inspect-picture-legend-faint = faint: sent before
inspect-picture-legend-cached = read from the cache
inspect-picture-legend-break = prefix break
inspect-next-request = the next request
inspect-request-number = request { $number }
inspect-why-no-cause = NO CAUSE
inspect-breaks = { $number ->
    [one] 1 break
   *[other] { $number } breaks
 }
inspect-edits = { $number ->
    [one] 1 edit
   *[other] { $number } edits
 }
inspect-messages = { $number ->
    [one] 1 message
   *[other] { $number } messages
 }
inspect-requests = { $number ->
    [one] 1 request
   *[other] { $number } requests
 }
inspect-segments = { $number ->
    [one] 1 segment
   *[other] { $number } segments
 }
inspect-tools = { $number ->
    [one] 1 tool
   *[other] { $number } tools
 }
inspect-between = ,{" "}
