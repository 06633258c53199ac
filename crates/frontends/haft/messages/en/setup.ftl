# The first start: choosing a model.

setup-welcome = haft has no model yet. Esc cancels; nothing is written before a model has answered.
setup-trying = Trying { $name }.
setup-done = It answers. Written to { $file }.
setup-failed = That did not work: { $failure }.
setup-provider-title = Choose a provider
setup-variable-set = { $variable } is set
setup-key-present = key found
setup-key-missing = Needing a key: { $listed }
setup-local = a server on this machine, { $url }
setup-local-answers = running at { $url }
setup-key-set = key configured
setup-other-choices =
    s  a server of your own, by its address
    {"   "}d  none: watch the demo, which needs no key and no network
setup-provider-question = Number, name, s or d:{" "}
setup-url-question = Address, such as http://127.0.0.1:8080/v1:{" "}
setup-bad-url = An address begins with http:// or https://.
setup-apis = Its API is one of { $listed }; most servers use { $api }.
setup-api-question = API, Enter for openai-chat:{" "}
setup-key-kept = It is kept in { $file }, which only you can read.
setup-key-optional = Its key, if it needs one. { $kept }
setup-key-needed = The key of { $name }. { $kept }Or cancel with Esc, set { $variable }, and start haft again.
setup-key-question-optional = Key, Enter for none:{" "}
setup-key-question = Key:{" "}
setup-model-title = Choose a model
setup-more = and { $more } more
setup-model-question-name = The model's name:{" "}
setup-model-question = Number or name:{" "}
setup-key-unwritable = cannot write the key to `{ $file }`: { $error }
setup-not-a-table = `providers` in `{ $file }` is not a table; add the model by hand
setup-no-choice = Type a number from 1 to { $count }, { $others }.
setup-unknown-choice = There is no choice `{ $typed }`. Type a number from 1 to { $count }, { $others }.
setup-provider-letters = a name, s or d
setup-model-letters = or the name of a model
setup-unknown-api = There is no API `{ $typed }`; it is one of { $listed }.
setup-empty-key = Type or paste the key, or press Esc to cancel.
