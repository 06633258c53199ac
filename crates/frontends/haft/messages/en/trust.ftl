# `haft trust`, and the question in a folder that is not trusted.

trust-changed-meanwhile = The files changed before you answered: the folder is not trusted. Check them again.
trust-whole-project = { $folder } is part of that project: trust applies to all of it.
trust-server = MCP server { $name }: hosts { $network }; writable folders { $folders }
trust-state = { $folder }: { $state }
trust-heading-changed = Changed since it was trusted:
trust-heading-run = Would run:
trust-heading-instructions = Instruction files that would be loaded:
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
trust-question = haft can work here without these files. Trust the folder? (y = yes, Enter = no)
trust-more = (there may be more: not all folders were searched)
