# `haft models`.

models-declared = Declared `{ $name }` in `{ $file }`. `haft models test { $name }` tries it.
models-bad-name = `{ $name }` is not a model name; write `provider/model`
models-already-declared = `{ $name }` is already declared in `{ $file }`; change it there
models-provider-exists = provider `{ $name }` already exists; leave `--{ $flag }` out, or set `providers.{ $name }.{ $key }` in `{ $file }`
models-provider-new = provider `{ $name }` is new; give its `--api` and `--base-url`
models-not-a-table = `{ $name }` in `{ $file }` is not a table of its own; add the model by hand
models-main = {" "}(main)
models-show-heading = { $model } (key: { $key })
models-role-main = { $first } (as main)
models-price-source = { $name }: { $source } as of { $as_of }{ $note }
models-which = which model? Give its name as `provider/model`, or set `model`
models-test-heading = { $model } over { $api } at { $url }
models-test-listed =
    list     { $models ->
        [one] 1 model, this one
       *[other] { $models } models, this one among them
    }
models-test-unlisted =
    list     { $models ->
        [one] 1 model, not this one
       *[other] { $models } models, this one not among them
    }
models-test-no-list = list     none: { $problem }
models-test-answer = answer   { $reply } after { $total } ms, first token after { $first } ms
models-test-no-usage = usage    not reported
models-test-usage = usage    { $input } input, { $cached_input } read from the cache, { $cache_write } written to it, { $output } output{ $cost }
models-test-cache-works = cache    works: the second request read { $tokens } tokens from it
models-test-cache-unused = cache    nothing was read from it the second time
models-test-cache-declared = cache    declared as { $rule }, from { $tokens } tokens, for { $ttl } (`--cache` tries it)
models-unknown-provider = there is no provider `{ $name }`
models-price = { $input } in, { $output } out a million tokens
models-none =
    No models are declared in `{ $file }`, and no key of a built-in provider is in the environment.
    Set one of these variables to use the models beside it, or declare a model with `haft models add`:

    { $models }
    `haft models list --all` shows windows and prices.
models-no-key-needed = nothing: a local server
models-use-main = the work, and every role that is not set
models-use-code = the coding agent; the next in the list while the first is overloaded
models-use-chat = `haft chat`
models-use-summary = summaries of archived rounds
models-use-sub-agent = agents whose file names no model
models-use-embedding = vectors for collections; keywords only where it is not set
models-use-vision = descriptions of images for a main model that takes no images; none where it is not set
models-use-commit = commit messages
models-use-index = descriptions of folders; the models of `summary` where it is not set
models-use-planner = answers in plan mode
models-use-designer = the built-in sub-agent `designer`; there is none where it is not set
models-use-title = names of conversations at the terminal; without it, the first words of the prompt
models-profile =
    Profile: `{ $profile }`, { $reason ->
        [entry] as its entry says
        [window] because its window is at most 16,384 tokens
        [name] because its name indicates few parameters
       *[default] the default
    }
models-test-failed = failed   { $failure }
