# `haft hooks`.

hooks-none = There are no hooks. `docs/hooks.md` says how to add one.
hooks-untrusted = no, not trusted
