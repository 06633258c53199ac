# The question before a tool call runs.

approval-outside = outside the sandbox
approval-of-subagent = of the sub-agent { $agent }
approval-question = Allow this? { $reason }
approval-not-allowed-yet = not allowed yet:
approval-always-allows = always would allow:
approval-yes = yes, this once
approval-always = always: { $rules }
approval-always-many = always, by the { $count } rules above
approval-no = no
approval-no-reason = no, and tell the model why
approval-edit = edit it first
approval-short-yes = yes
approval-short-always = always
approval-short-no = no
approval-short-reason = why
approval-short-edit = edit
approval-reason-keys = Enter refuses with this reason, Esc goes back
approval-edit-keys = Enter runs it as edited, Esc goes back
approval-not-json = the arguments are not JSON: { $error }
