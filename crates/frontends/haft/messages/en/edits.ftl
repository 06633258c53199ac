# `haft context edit`, and `/context edit` in the terminal.

edits-no-model = No model was called: the price covers the text that must be kept verbatim.
edits-no-model-because = Without a summary by a model ({ $why }), the text that must be kept is sent verbatim.
edits-nothing-changed = Nothing was changed.
edits-done = Done.
edits-done-undo = Done. `haft context edit undo` undoes it.
edits-drops = Drops { $messages }
edits-pins = Pins { $messages }
edits-masks = Masks { $messages }
edits-restores = Restores { $messages }
edits-summarises = Summarises { $messages }
edits-takes-back = Undoes { $edits }
edits-along = A call and its results are one block, so these are included: { $along }.
edits-nothing-to-write = The next request resends nothing.
edits-to-write = The next request resends { $quote }.
edits-longer = {" "}Every request is { $tokens } tokens longer.
edits-shorter = {" "}Every request is { $tokens } tokens{ $cost } shorter.
edits-undo-last = undo the last edit of { $edits }
edits-title = Messages of this conversation that are sent
edits-title-note = Enter lists the actions for a message, with their cost.
edits-drop-question = Leave it out?
edits-drop = leave it out
edits-pin-question = Pin it?
edits-pin = pin it
edits-mask-question = Mask its content?
edits-mask = mask it
edits-restore-question = Send it as it was?
edits-restore = restore it
edits-undo-question = Undo the last edit?
edits-undo = undo it
edits-nothing-cached = Nothing cached has to be resent.
edits-saves = Every request is { $tokens } tokens shorter.
edits-cancel = Cancel
edits-not-sent = , not sent
edits-price = { $quote } to resend
edits-mask-note = only a line that names it is sent
edits-pin-note = it is never pruned or archived
edits-restore-note = it is sent as it was
edits-list-note = REMOVING: the change in the cost of the next request if the message and its block are dropped now. SAVES: the tokens that every later request saves. { $edits } in force.
edits-applied =
    { $count ->
        [one] done: 1 edit is in force; `/context edit` undoes the last
       *[other] done: { $count } edits are in force; `/context edit` undoes the last
    }
edits-cached = , cached
edits-tokens = { $tokens } tokens
edits-edited = , { $how }
edits-call = call { $tool }
edits-calls = { $count } calls
edits-result = result { $tool }
edits-message = { $role }: { $text }
