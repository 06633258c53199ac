# The wording for people of texts in library.ftl, by the same keys. A model reads many of those texts,
# too; what is meant for the model alone is left out here. Texts that are not listed are shown as they are.

## Why a call needs approval
library-the-model-itself-asks-for = the model flagged this as risky
library-no-rule-allows = not covered by any rule
library-changes-files-and-no-rule = not covered by any rule
library-calls-of-the-mcp-server = not covered by any rule
library-and-no-rule-allows-it = not covered by any rule
library-reaches-and-no-rule-allows = no rule allows connecting to `{ $b }`
library-a-hook-wants-it-to = a hook requires approval
library-sets-a-variable-which-no = `{ $a }` sets a variable, which command rules do not cover
library-gives-a-name-another-meaning = `{ $a }` redefines a name, which rules do not cover
library-is = `{ $a }` is { TRANSLATED($b) }
library-a-shell-that-reads-commands = a shell, and the command pipes into it
library-a-shell-that-runs-what = a shell whose script is known only at run time
library-a-script-in-a-file = a script in a file
library-a-script-in-another-shells = a script in another shell's language
library-a-shell-with-unusual-options = a shell with unusual options
library-a-script-that-only-the = a script that is known only at run time
library-a-script-that-this-program = a script that haft cannot parse
library-a-program-that-runs-what = a program that runs other programs
library-a-program-that-cannot-be = a program that cannot be found
library-is-only-known-to-the = is expanded by the shell and could be such an option
library-it-writes-which-no-rule = it writes `{ $a }`
library-would = only a `write_to_file(…)` rule can allow that
library-it-writes-and-only-the = it writes to `{ $a }`, a path that only the shell can resolve
library-it-reads-and-only-the = it reads `{ $a }`, which only the shell can resolve
library-may-name-a-protected-file = `{ $a }` may name a protected file: the shell expands it, so a prefix rule does not cover it
library-the-rule-may-speak-of = the rule `{ $a }` may apply to `{ $b }`, which the shell expands
library-reads-whole-folders-and-the = `{ $a }` reads whole folders, which may contain files of the rule `{ $b }`
library-is-protected-such-files-decide = `{ $a }` is protected (`{ $b }`): it controls what other programs run, so no rule can allow writing it
library-is-protected-such-files-decide-what = `{ $a }` is protected (`{ $b }`): it controls what other programs run
library-it-changes-nothing-but-hafts = it changes only haft's own notes

## Calls that were refused or did not run
library-the-user-did-not-allow = Not allowed
library-the-user-did-not-allow-this = Not allowed: { $b }
library-is-not-permitted-the-user-can = Not permitted: { TRANSLATE($b) }. To allow it: { TRANSLATE($c) }
library-is-not-permitted-do-not = Not permitted: { TRANSLATE($b) }
library-and-this-run-may-only = `{ $a }` { TRANSLATE($b) }, and this run is read-only (permission mode `plan`)
library-needs-the-users-permission-and = `{ $a }` needs your permission ({ TRANSLATE($b) }), and this run cannot ask
library-needs-the-users-permission-and-nobody = `{ $a }` needs your permission ({ TRANSLATE($b) }), and this run cannot ask (permission mode `{ $c }`). To allow it: { TRANSLATE($d) }
library-and-nobody-can-be-asked = { TRANSLATE($a) }, and this run cannot ask. To allow it: { TRANSLATE($b) }
library-the-call-was-cancelled-by = you canceled the call
library-a-plugin-and-the-user = You and a plugin both changed this call of `{ $a }`; it did not run
library-is-on-this-machine-or = `{ $a }` is on this machine or a private network, so it was not contacted; to allow it, add it to `web.allow_private`
library-the-site-asks-robots-not = the site's robots.txt asks programs not to read `{ $a }`
library-did-not-run-the-reply = Not run: the reply ended in the middle of the call
library-the-reply-was-cut-off = Not run: the reply reached the output limit in the middle of the call
library-did-not-run-send-one = Not run: { TRANSLATE($b) }
library-did-not-run-it-must = Not run: `{ $a }` must be the last call of a reply
library-did-not-run-its-arguments = Not run: the arguments contain `[masked: …]`, which stands for a secret. Writing it would destroy the secret
library-did-not-run-the-turn = Not run: the turn was interrupted first
library-was-interrupted-it-had-begun = Interrupted while running; it may have taken effect
library-there-is-no-tool-do = There is no tool `{ $a }`
library-there-is-no-tool-did = There is no tool `{ $a }`
library-the-tool-is-not-available-here = The tool `{ $a }` is not available here; it needs { TRANSLATE($b) }
library-crashed-this-is-a-bug = `{ $a }` crashed. This is a bug in the tool
library-crashed-this-is-a-bug-in = `{ $a }` crashed ({ $b }). This is a bug in the tool
library-failed-several-times-in-a = `{ $a }` failed { $b } times in a row and is paused for { $c } s
library-invalid-arguments-for = Invalid arguments: { TRANSLATE($b) }

## Edits that did not fit
library-exists-and-was-not-read = `{ $a }` exists, but the model has not read it
library-was-changed-by-someone-else-since = `{ $a }` changed after the model read it ({ TRANSLATE($b) })
library-was-changed-by-someone-else = `{ $a }` changed while it was being written; nothing was written
library-is-not-in-nothing-was = The text to replace is not in `{ $a }`; nothing was changed
library-fits-places-in-at-lines = The text to replace occurs { $a } times in `{ $b }`, at lines { $c }; nothing was changed
library-of-edit-is-not-in = The text that edit { $a } replaces is not in `{ $b }`; nothing was changed
library-of-edit-is-not-in-as = The text that edit { $a } replaces is not in `{ $b }` after the edits before it; nothing was changed
library-of-edit-fits-places-in = The text that edit { $a } replaces occurs { $b } times in `{ $c }`, at lines { $d }; nothing was changed
library-of-edit-fits-places-in-as = The text that edit { $a } replaces occurs { $b } times in `{ $c }` after the edits before it, at lines { $d }; nothing was changed
library-the-search-part-of-block = The text that block { $a } replaces is not in the file; nothing was changed
library-the-search-part-of-block-fits = The text that block { $a } replaces occurs only at line { $b }, which another block also changes; nothing was changed
library-the-search-part-of-block-fits-places = The text that block { $a } replaces occurs { $b } times, at lines { $c }; nothing was changed
library-is-empty-but-has-content = The text to replace is empty, but `{ $a }` has content; nothing was changed
library-nothing-would-change-in-and = Nothing would change in `{ $a }`: the old and the new text are identical
library-nothing-would-change-in-the = Nothing would change in `{ $a }`: the old and the new text are identical
library-edit-changes-nothing-in-and = Edit { $a } would change nothing in `{ $b }`
library-holds-exactly-this-already-nothing = `{ $a }` already has exactly this content; nothing was changed
library-exists-already-nothing-was-changed = `{ $a }` already exists; nothing was changed
library-there-is-no-line-in = Chunk { $c } names a line that is not in `{ $b }`; nothing was changed
library-chunk-of-is-not-nothing = Chunk { $a } of `{ $b }` does not match the file; nothing was changed
library-chunk-of-fits-places-at = Chunk { $a } of `{ $b }` matches { $c } places, at lines { $d }; nothing was changed
library-send-the-whole-corrected-file = The model is asked for the whole file
library-nothing-similar-was-found-read = Nothing similar was found
library-the-line-is-missing-the = the line `{ $a }` is missing: the patch may be incomplete
library-is-empty-say-what-you = `question` is empty
library-is-empty-say-what-you-plan = `response` is empty
library-is-empty-say-what-the = `content` is empty
library-is-empty-say-what-to = `query` is empty
library-is-empty-say-what-is = `{ $a }` is empty
library-is-in-line-in-other = `{ $a }` is in line { $b }, in other upper and lower case:
library-is-in-line-and-is = `{ $a }` is in line { $b }, and { $c } is compared with whole lines:
library-is-inside-line-and-is = `{ $a }` is inside line { $b }, and { $c } is compared with whole lines:
library-is-in-line-copy-the = `{ $a }` is in line { $b }:
library-is-inside-line-copy-the = `{ $a }` is inside line { $b }:
library-has-no-write-permission-for = `{ $a }` is read-only for its owner (mode { $b }), so it was not changed
library-is-with-a-password-ask = `{ $a }` is { $b } with a password

## Results of commands
library-timed-out-after-s-it = Timed out after { $a } s
library-timed-out-after-s-it-and = Timed out after { $a } s. No output
library-cancelled-it-and-everything-it = Cancelled
library-cancelled-it-and-everything-it-started = Cancelled. No output
library-some-of-its-processes-could = [Some of its processes are still ending.]
library-it-waits-for-input-at = [It waits for input, which it cannot get here.]
library-it-was-waiting-for-input = [It was waiting for input, which it cannot get here.]
library-it-seems-to-want-a = [It seems to need a terminal or an answer, and has neither.]
library-is-hidden-by-the-sandbox-in = [`{ $a }` is hidden by the sandbox, in which `{ $b }` is a private folder. To change that, add the path to `[sandbox] readable`.]
library-is-hidden-by-the-sandbox-use = [`{ $a }` is hidden by the sandbox. To change that, add the path to `[sandbox] readable`.]
library-sandbox-refused-hosts = [The sandbox refused network access to { $a }. To allow it, add the hosts to `[sandbox] network`.]
library-sandbox-has-no-network = [The sandbox has no network access. To allow hosts, add them to `[sandbox] network`.]
library-sandbox-only-proxy = [The sandbox allows network access only through the proxy in `http_proxy` and `https_proxy`. To allow hosts, add them to `[sandbox] network`.]
library-sandbox-read-only = [The sandbox does not allow writing there. To allow it, add the folder to `[sandbox] writable`.]
library-the-whole-has-lines-and = [The full { $a }, { $b } lines and { $c } bytes, is in `{ $d }`.]
library-the-whole-has-lines-and-bytes = [The full { $a }, { $b } lines and { $c } bytes, was not kept.]
library-the-same-call-failed-in = [This call failed in the same way before.]
library-read-from-the-text-of = [The call was found in the text of the reply.]
library-its-time-was-over = timed out
library-failed-its-time-was-over = { $a } ({ $b }) timed out after { $c }
library-was-killed-after-it-still = { $a } ({ $b }) was stopped after { $c }, when the run ended
library-was-killed-after = { $a } ({ $b }) was stopped after { $c }
library-was-lost-it-ended-together = { $a } ({ $b }) was lost when haft exited; how far it got is unknown

## Providers
library-the-provider-refused-the-key = invalid API key (status { $a }): { $b }; set a valid key for this provider
library-the-provider-refuses-to-spend = out of credit (status { $a }): { $b }
library-the-provider-answered-status = the provider returned status { $a }{ $b }: { $c }
library-cannot-reach-check-and-the = cannot connect to { $a }: { TRANSLATE($b) }; check that the server is running and that `base_url` is correct
library-did-not-answer-like-check = { $a } does not respond like { $b }: { TRANSLATE($c) }; check `base_url` and `api`
library-the-connection-was-lost-before = the connection was lost in the middle of the reply
library-gave-up-after-retries = gave up after { $a } retries: { TRANSLATE($b) }
library-cannot-answer-now-asking = `{ $a }` is not available ({ TRANSLATE($b) }); switching to `{ $c }`
library-cannot-be-asked-instead = `{ $a }` cannot be used instead: { TRANSLATE($b) }
library-a-picture-is-left-out = an image was left out: `{ $a }` takes none, and no model has the role `vision` (`model_roles.vision`) to describe it
library-a-picture-is-left-out-it = an image was left out, because it could not be described: { TRANSLATE($a) }

## Turns
library-every-write-and-edit-failed = all edits failed; asking the model to check
library-asking-the-model-to-continue = { TRANSLATE($a) }; asking the model to continue ({ $b } of { $c })
library-the-task-was-not-reported = the model did not report the task as done
library-the-goal-was-not-reported = the model did not report the goal as reached
library-the-reply-was-cut-by = the reply reached the output limit
library-the-same-calls-had-the = repeated calls with identical results
library-the-model-made-the-same = The model kept repeating calls with identical results. Rephrase the task or choose another model
library-the-model-stopped-working-without = The model stopped without reporting the goal as reached
library-the-reply-had-calls-the = the reply had { $a } calls; only the first { $b } run
library-the-description-of-was-not = the description of `{ $a }` was not updated: { TRANSLATE($b) }
library-cancelled-the-turn-can-be = Cancelled; the turn can be resumed

## Context and cost
library-tokens = ≈{ $a } tokens ({ $b })
library-the-cache-is-cold-to = the cache has expired: { TRANSLATE($a) } to resend
library-has-seen-nothing-of-this = `{ $a }` has no cache for this conversation, which was with `{ $b }`: { TRANSLATE($c) } to resend
library-old-results-were-cleared-tokens = cleared old results: { $a } fewer tokens sent
library-messages-marked-as-deleted-are = left out messages marked as deleted: { $a } tokens
library-the-messages-marked-for-deletion = messages marked for deletion were sent: without them, nothing would be left to answer
library-the-request-was-too-large = the request was too large: left out { $a } older rounds and { $b } older steps ({ $c } tokens)
library-the-request-was-too-large-only = the request was too large: only role, tools, rules, the newest step and the request are sent (left out { $a } tokens)
library-the-provider-refused-a-request = the provider rejected a request of { $a } tokens as too long; retrying with at most { $b } (step { $c } of { $d })
library-archiving-tokens-to-write-again = Archiving { TRANSLATE($a) } ({ $b } tokens; { TRANSLATE($c) } to resend)…
library-are-archived-behind-a-summary = Archived { TRANSLATE($a) }, replaced by a summary
library-are-archived = Archived { TRANSLATE($a) }
library-there-is-nothing-to-archive = Nothing to archive besides the newest step
library-nothing-was-archived-what-must = Nothing was archived: what must be kept of the older steps takes as much room as they do
library-nothing-was-archived-interrupted-the = Interrupted; nothing was archived
library-no-summary-could-be-had = No summary could be generated. Nothing is lost; try again later
library-older-rounds = { $a } older rounds
library-1-older-round = 1 older round
library-older-steps = { $a } older steps
library-1-older-step = 1 older step

## Changes of files
library-there-is-nothing-to-undo = nothing to undo
library-there-is-nothing-to-redo = nothing to redo
library-the-changes-of-call-were = the changes of call `{ $a }` were already undone
library-someone-else-changed-it-since = it was changed since
library-it-was-changed-by-someone = it was changed just now
library-the-project-was-changed-at = the project was changed in the same places
library-call-changed-the-same-place = `{ $a }` (call { $b }) changed the same place later; undo that first
library-what-it-held-before-was = its earlier content was not saved: it was too large, unreadable or ignored
library-what-it-held-before-is = its earlier content is no longer stored
library-haft-was-stopped-in-the = haft was stopped in the middle of this change, so it is unknown who changed it last

## MCP servers
library-mcp-server-of-this-project = MCP server `{ $a }` runs sandboxed without network; override it in your config.toml
library-mcp-server-runs-confined-and = MCP server `{ $a }` runs sandboxed without network, because { TRANSLATE($b) }; `sandbox = false` in its entry changes that
library-the-mcp-server-was-started = the MCP server `{ $a }` was started { $b } times in a few minutes; the next attempt is in { $c } s
library-the-mcp-server-could-not-be = the MCP server `{ $a }` could not be started { $b } times in a row; the next attempt is in { $c } s
library-the-mcp-server-said-nothing = the MCP server `{ $a }` did not respond for { $b } s; whether the call took effect is unknown
library-the-mcp-server-ended-in = the MCP server `{ $a }` ended in the middle of the call; whether it took effect is unknown{ $b }
library-the-mcp-server-refused = the MCP server `{ $a }` returned an error: { $b }
library-the-mcp-server-wants-a = the MCP server `{ $a }` requires a login: `haft mcp login { $b }`
library-is-not-among-the-tools = `{ $a }` is not among the tools of this agent, which may use only { $b }

library-the-mcp-server-could-not = the MCP server `{ $a }` could not be started: { TRANSLATE($b) }
library-mcp-server-was-not-started = MCP server `{ $a }` was not started: { TRANSLATE($b) }
library-expect-initialized-result = the server sent an invalid reply to the handshake

## Choosing
library-no-model-is-chosen-give = no model is configured; give one as `provider/model`
library-no-model-is-chosen-use = no model is configured; use `-m provider/model`, or set `model` in config.toml
library-could-be-any-of-give = `{ $a }` matches several: { $b }; give more of the id
library-there-is-no-conversation-to = no conversation to continue here
library-there-is-no-run-of = no interrupted run of `{ $a }` to resume
library-stayed-locked-by-for-s = { $a } is locked by { $b } (waited { $c } s); try again when it has finished

## Notices that appear once
library-prompts-and-defaults-have-changed = prompts and defaults changed in this version: conversations cost less, and are shortened later and by more at once. To keep the old defaults, set `{ $a }`, `{ $b }`, `{ $c }`, and `{ $d }` with `{ $e }`. This notice appears once
library-your-hooks-run-in-the = your hooks now run in the command sandbox: they can write only in the project and a private `/tmp`, and have no network. Set `sandbox = false` in the entry of a hook that needs more. This notice appears once

## `haft doctor`
library-pages-and-trees-are-whole = pages and trees are intact ({ $a })
library-pages-and-trees-are-whole-2 = pages and trees are intact
library-indexes-did-not-fit-their = rebuilt indexes that did not match their tables
library-messages-are-what-was-stored = { $a } messages match their checksums
library-of-messages-cannot-be-read = { $a } of { $b } messages do not match their checksums
library-what-could-be-counted-again = recounted what could be recounted
library-logged-requests-can-be-made = { $a } logged requests are complete
library-some-logged-requests-cannot-be = some logged requests are incomplete; conversations are not affected
library-some-files-cannot-be-put = some files cannot be repaired
library-files-were-put-in-order = files were repaired
library-is-for-its-owner-only = { $a }: only its owner can read it
library-could-be-read-by-others = { $a } was readable by others ({ $b }); fixed
library-removed-which-a-killed-process = removed { $a }, left by a killed process
library-it-is-made-with-the = built at the first search
library-it-is-whole = intact ({ $a })
library-it-was-damaged-the-next = it was damaged ({ $a }); the next search rebuilds it
library-are-whole-the-newest-of = { $a } intact, the newest from { $b } UTC{ TRANSLATE($c) }
library-were-put-aside-by-restores = ; { $a } set aside by restores
library-contents-are-what-was-stored = { $a } file versions match their checksums
library-no-file-was-changed-yet = no file changes recorded yet

## Other errors
library-mend-it-or-remove-it = { $a }: { $b }; repair or remove it
library-mend-it-or-remove-it-no = { $a }: { $b }; repair or remove it (until then, no folder is trusted)
library-there-are-only-edits-to = there are only { $a } edits to undo
library-the-conversation-was-taken-back = the conversation was rewound
library-the-execute-view-is-written = the execute view is rewritten each time
library-there-is-nothing-to-take = nothing to undo
library-call-changed-no-files-or = call `{ $a }` changed no files, or was already undone
library-no-change-of-in-this = no change of `{ $a }` is left to undo
library-nothing-was-taken-back-the = nothing was undone: the files have changed since the call
library-the-search-part-of-block-is = The text that block { $a } replaces is empty
library-the-projects-own-rules-cannot = the project's own rules cannot be applied, so nothing runs: { TRANSLATE($a) }; fix the rule, or revoke trust in the folder
library-is-several-models-write-one = `{ $a }` matches several models: { $b }; use one of these
library-no-answer-for-s-while = no response for { $a } s while waiting for { $b }
library-has-no-price-in-usd = `{ $a }` has no price in USD, so a cost limit cannot be enforced; set `price` in `[models."{ $b }"]`, or the rate of its currency in `[currency_rates]`, or also set a token limit (`--max-total-tokens`)
library-is-open-in-another-process = { $a } is open in another process; close it there, then try again
library-holds-no-word-to-search = `{ $a }` contains no word to search for
library-is-which-is-no-address = `store.url` is `{ $a }`, which is not a server address: { $b }
library-has-format-this-haft-knows = { $a } has format { $b }, but this haft supports formats up to { $c }; use a newer haft
library-cannot-put-a-copy-aside = cannot set a copy of { $a } aside: { $b }
library-is-several-libraries-say-whose = `{ $a }` matches several libraries: { $b }; give `user/library`
library-cannot-be-trusted-not-everything = { $a } cannot be trusted: some of what would run cannot be inspected (a link to a folder, an unreadable file, or too many files under `.haft` or `.claude`)
library-the-stored-edits-of-this = the stored edits of this conversation cannot be read: { $a }
library-what-must-be-kept-of = the parts of these messages that must be kept are as long as the messages; give a summary with `--text`
library-there-is-a-conversation-already = a conversation `{ $a }` already exists
library-git-is-not-installed-or = git is not installed, or only in a folder that this project or other users can write to
library-message-is-what-is-being = message { $a } is being answered and stays
library-message-is-the-summary-of = message { $a } is the summary of archived rounds; without it, the model would lose them
library-cannot-look-for-interrupted-changes = cannot check for interrupted changes in `{ $a }`: { $b }
library-names-a-file-that-is = `@{ $a }` names a file that does not exist
library-is-left-out-imports-lead = `@{ $a }` is skipped: imports may be nested at most { $b } deep
library-two-summaries-were-refused = two summaries were rejected: { TRANSLATE($a) }
library-its-folder-is-gone-or = its folder no longer exists or is now a link
library-a-folder-that-is-not = a folder that is not empty has taken its place
library-none-of-the-folders-of = none of the folders of the collection exists ({ $a }); restore them, or change `folders` in its configuration
library-the-search-broke-off = the search was interrupted: { $a }
library-the-server-gave-no-vectors = the server `{ $a }` returned no vectors: { $b }
library-another-process-works-on-the = another process is working on the run `{ $a }`; wait until it ends
library-haft-speaks-to-http-proxies = haft supports only HTTP proxies, not `{ $a }`: set HTTP_PROXY and HTTPS_PROXY to `http://host:port`
library-it-is-to-run-in = it must run in a sandbox, and none is available: { $a }
library-collections-are-asked-by-words = collections are searched by keywords only, because the run has a cost limit and the cost of vectors is not known in advance
library-its-provider-has-no-use = its provider has no `/embeddings` endpoint; use one with `api = "openai-chat"`
library-its-are-left-out = its `[hooks]` are ignored: { $a }
library-its-hooks-are-left-out = its hooks are ignored: { $a }
library-it-leads-out-of-the = it points outside the project and is ignored
library-it-leads-out-of-the-project = it points outside the project (to { $a }) and is ignored
library-it-is-not-a-file = it is not a file and is ignored
library-it-is-larger-than-kb = it is larger than { $a } KB and is ignored
library-it-cannot-be-read-and = it cannot be read and is ignored: { $a }
library-counts-in-your-own-configuration = `sandbox = false` applies only in your own configuration; the hook `{ $a }` runs in the sandbox
