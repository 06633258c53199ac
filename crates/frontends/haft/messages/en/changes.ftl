# `haft changes`, `haft undo`, `haft redo`, `haft rewind`.

changes-rewound = rewound to { $id }  { $name }
changes-would-keep = Would keep { $kept } of { $all } messages.
changes-prompt = Your message was:
changes-rewind-which = give one of your messages or of the model's; `haft conversations show` names them
changes-none = This conversation has changed no files.
changes-all-undone = Everything this conversation changed was undone.
changes-note = ({ $note })
changes-step-undo = undo by { $tool } ({ $call_id })
changes-undone = , undone
changes-unknown-message = this conversation has no message `{ $id }`; `haft conversations show` lists them
changes-wrong-message = message `{ $id }` is neither the model's nor yours; give the message that holds the call, or `--call`
changes-conflicts = Files that were skipped are unchanged. Change them by hand, or undo other calls first.
changes-did-undo = Undid the changes of { $calls }:
changes-would-undo = Would undo the changes of { $calls }:
changes-did-redo = Redid the changes of { $calls }:
changes-would-redo = Would redo the changes of { $calls }:
changes-undo = undo
changes-redo = redo
changes-call = a call
changes-left = left
changes-unchanged = unchanged
changes-removed = removed
changes-recreated = recreated
changes-restored = restored
changes-mode = {" "}(mode { $before } → { $after })
changes-rewound-name = {" "}(rewound)
