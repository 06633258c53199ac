# `haft context replay`.

replay-bad-tail = use up to { $most } tokens and a share from 0 to 1, such as `1000:0.05`
replay-bad-prices = use two numbers, as multiples of the input price, such as `0.1/1.25`
replay-bad-plot = use a name that ends in .svg or .html
replay-unwritable = cannot write `{ $path }`
replay-written = wrote { $path }
replay-no-counts = `{ $recorded }` needs the provider's counts, and no conversation there has them
replay-left-out-all = { $left_out } of { $all } conversations are left out of every row: `{ $recorded }` needs the provider's counts, and they have none
replay-unknown-cache = `{ $name }` is not a cache rule; use anthropic, openai, openai-breakpoints, gemini, deepseek, vllm, llama-cpp, automatic or none
replay-cannot-create = cannot create `{ $folder }`
replay-unwritable-folder = cannot write into `{ $folder }`: { $error }
replay-no-model = No model is called: an archive holds what must be kept, verbatim, and no summary by a model.
replay-same-bodies = { $name }: { $same } of { $all } bodies are identical to those sent
replay-bad-file = `{ $file }` is not a conversation: { $problem }
replay-no-requests = no conversation there has a request: a user's message that an assistant answered
replay-unreadable-folder = cannot read the folder `{ $folder }`: { $error }
replay-skipped = skipped `{ $file }`: { $problem }
replay-none-in-folder =
    there is no conversation in `{ $folder }`: { $files ->
        [one] 1 file ending in .json, .jsonl, .traj or .gz was read
       *[other] { $files } files ending in .json, .jsonl, .traj or .gz were read
    }
replay-own-no-requests = the conversation has no requests yet
replay-kept = { $kept } of { $all }
replay-stopped = the comparison was stopped
