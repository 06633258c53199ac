# `haft doctor`.

doctor-config = { $file } is valid
doctor-variables = every variable that begins with `HAFT_` has an effect
doctor-variables-unknown = { $count ->
    [one] one variable that begins with `HAFT_` has no effect
   *[other] { $count } variables that begin with `HAFT_` have no effect
}
doctor-installed =
    haft { $version }, { $by ->
        [archive] unpacked from an archive
        [cargo] installed with cargo
        [checkout] built from source
        [deb] installed as a Debian package
        [make] installed with make
        [npm] installed with npm
        [pypi] installed with pip
       *[unknown] installed in an unknown way
    }: { $path }
doctor-newer = there is a newer release, { $newest }; this is { $version }
doctor-newest = the newest release is { $newest }
doctor-newer-failed = { $address } names no release: { $error }
doctor-newer-no-name = the answer has no `tag_name`
doctor-hint-damaged = `haft doctor --salvage` exports what can still be read, `haft conversations backup list` shows the backups
doctor-hint-unreadable = `haft doctor --salvage` exports what can still be read of them; after that they can be removed
doctor-hint-backup = `haft conversations backup` makes one now
doctor-salvage-nothing = there is nothing to salvage: { $database } does not exist
doctor-salvage-complete = nothing is missing
doctor-salvage-lost =
    { $lost ->
        [one] 1 message could not be read
       *[other] { $lost } messages could not be read
    }
doctor-salvage-done =
    { $conversations ->
        [one] 1 conversation
       *[other] { $conversations } conversations
    } with { $messages ->
        [one] 1 message
       *[other] { $messages } messages
    } salvaged to { $folder }; { $lost }.
    To use them, move { $database } away and run `haft conversations import { $folder }`.
doctor-salvage-copy = What was read of a copy with a damaged log is in { $copy }.
doctor-outputs-none = no output was too long yet
doctor-outputs-unreadable-folder = cannot read { $folder }: { $error }
doctor-outputs =
    { $count ->
        [one] 1 long output
       *[other] { $count } long outputs
    }, { $size }
doctor-outputs-unreadable = some long outputs cannot be read
doctor-servers =
    { $confined ->
        [one] 1 MCP server of yours runs
       *[other] { $confined } MCP servers of yours run
    } in the sandbox
doctor-servers-outside = run as you, outside the sandbox (`sandbox = false`): { $names }
doctor-store =
    it answers and holds { $messages ->
        [one] 1 message
       *[other] { $messages } messages
    }
doctor-commands = commands run under their supervisor
doctor-commands-wrong-exit = a command that exits with 7 ended as { $outcome }
doctor-commands-failed = commands cannot be run: { $error }
doctor-sandbox-failed = the sandbox cannot be set up: { $error }
doctor-model-none = no model is chosen; set `model` in config.toml
doctor-model =
    the server of `{ $name }` answers and lists { $models ->
        [one] 1 model
       *[other] { $models } models
    }
doctor-model-failed = the server of `{ $name }`: { $error }; `haft models test` shows more
doctor-model-timeout = it does not answer within { $seconds } s
doctor-health =
    { $health ->
        [skipped] -
        [repaired] repaired
        [warning] warning
        [damaged] DAMAGED
       *[ok] ok
    }
