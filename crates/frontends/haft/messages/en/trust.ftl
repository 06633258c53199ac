# `haft trust`, and the question in a folder that is not trusted.

trust-changed-meanwhile = The files changed before you answered: the folder is not trusted. Check them again.
trust-whole-project = { $folder } is part of that project: trust applies to all of it.
trust-server = MCP server { $name }: allowed hosts: { $network }; writable folders: { $folders }
trust-state = { $folder }: { $state }
trust-heading-changed = Files changed since you trusted this folder:
trust-heading-run = Would run:
trust-heading-instructions = Files that would be read:
trust-heading-tighten = Settings that would become stricter:
trust-heading-ignored = Would be ignored:
trust-heading-unreadable = Would stop haft from starting:
trust-heading-grants = Permissions that would be granted:
trust-server-none = none
trust-revoked = { $folder } is no longer trusted.
trust-was-not-trusted = { $folder } was not trusted.
trust-granted =
    { $folder } is trusted. { $files ->
        [0] Nothing in it would run.
        [one] One file in it would run; when it changes, the trust ends.
       *[other] { $files } files in it would run; when one of them changes, the trust ends.
    }
trust-question = haft also works here without trust; `/trust` asks again. Trust the folder? (y = yes, Enter = no)
trust-more = (there may be more: not all folders were searched)
trust-meaning = If you trust this folder, haft sends its instruction files to the model, runs the commands below by itself, and uses git here. The model still needs your permission for edits and commands.
trust-meaning-without-commands = If you trust this folder, haft sends its instruction files to the model and uses git here. Nothing in it runs by itself. The model still needs your permission for edits and commands.
trust-command-hook = hook { $name }: { $line } ({ $file })
trust-command-server = MCP server { $name }: { $line } ({ $file })
trust-command-program = external tool: { $line }
trust-choice-title = Trust the folder?
trust-choice-no = no, leave it untrusted
trust-choice-yes = yes, trust it
trust-already = { $folder } is trusted; `haft trust --revoke` ends that.
trust-taken-up = { $folder } is trusted. Its files apply from your next message on.
