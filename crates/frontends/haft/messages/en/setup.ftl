# The first start: choosing a model.

setup-welcome = No model is configured yet. Nothing is saved until a model responds. Esc goes back; at the first question, it cancels.
setup-trying = Connecting to { $name }…
setup-done = Connected. Saved to { $file }.
setup-failed = Connection failed: { $failure }.
setup-provider-title = Choose a provider
setup-variable-set = { $variable } is set ({ $host })
setup-variable-set-in = { $variable } is set ({ $host }, prices in { $currency })
setup-key-present = key found
setup-key-missing = API key required: { $listed }
setup-local-silent = Local servers, not running: { $listed }
setup-local-answers = running at { $url }
setup-key-set = key configured
setup-other-choices =
    s  Custom server (enter a URL)
    {"   "}d  Skip: run the offline demo
setup-provider-question = Number, name, s or d:{" "}
setup-url-question = URL, such as http://127.0.0.1:8080/v1:{" "}
setup-bad-url = Not a URL. Enter one such as http://127.0.0.1:8080/v1.
setup-apis = API type ({ $listed }); most servers use { $api }.
setup-api-question = API type, Enter for openai-chat:{" "}
setup-key-kept = Saved to { $file }, readable only by you.
setup-key-optional = API key (optional). { $kept }
setup-key-needed = API key for { $name }. { $kept }Or press Ctrl-C, set { $variable }, and start haft again.
setup-key-question-optional = Key, Enter for none:{" "}
setup-key-question = Key:{" "}
setup-model-title = Choose a model
setup-more = and { $more } more
setup-model-question-name = Model name:{" "}
setup-model-question = Number or name:{" "}
setup-key-unwritable = cannot write the key to `{ $file }`: { $error }
setup-not-a-table = `providers` in `{ $file }` is not a table; add the model by hand
setup-no-choice = Enter a number from 1 to { $count }, { $others }.
setup-unknown-choice = Not an option: { $typed }. Enter a number from 1 to { $count }, { $others }.
setup-provider-letters = a name, s or d
setup-model-letters = or the name of a model
setup-unknown-api = Not an API type: { $typed }. Use one of { $listed }.
setup-empty-key = Type or paste the key, or press Esc to go back.
