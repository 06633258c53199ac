# `haft rag`.

rag-there-are-none = there are none
rag-there-are = there are { $names }
rag-unknown = there is no collection `{ $name }`; { $there }; `haft rag add` adds one
rag-declared = Declared `{ $name }` in `{ $file }`.
rag-indexed =
    Read { $read ->
        [one] 1 file
       *[other] { $read } files
    }: { $files } with text, { $passages ->
        [one] 1 passage
       *[other] { $passages } passages
    }, an index of { $size }.
rag-no-text = warning: there is no text in these folders; ignored, hidden and large files are left out
rag-removed = Removed `{ $name }` from `{ $file }`.
rag-not-a-folder = `{ $folder }` is not a folder
rag-bad-path = the path `{ $folder }` is not UTF-8 and cannot be stored
rag-not-a-table = `{ $section }` in `{ $file }` is not a table of its own; add the collection by hand
rag-already-declared = `{ $name }` is already declared in `{ $file }`; change it there, or remove it with `haft rag remove { $name }`
rag-not-declared = `{ $file }` declares no collection `{ $name }`; `haft rag list` shows them
rag-none = No collections yet. Add one with `haft rag add NAME DIR`.
rag-no-question = the question is empty
rag-no-hits = Nothing was found. Try the words the documents would use.
rag-not-local = `{ $address }` is not a loopback address; use 127.0.0.1 or [::1]
rag-cannot-listen = cannot listen on `{ $address }`: { $error }
rag-serving =
    Serving { $names } at http://{ $address }/v1
    { $token }
rag-answering = Answers are written by { $models }.
rag-already-served = `{ $name }` is a server already; only collections of folders are served
rag-nothing-to-serve = there is no collection of folders to serve; `haft rag add NAME DIR` adds one
rag-no-token = the environment variable `{ $variable }` is not set; export the token, or leave `--token-env` out
rag-token = Token: { $token }
