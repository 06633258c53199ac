# `haft serve`.

serve-cannot-listen = cannot listen on `{ $address }`: { $error }; leave `--port` out to use a free port
serve-listening =
    { $url }
    Only this address, opened on this machine, shows the page. Press Ctrl-C to stop.
serve-cannot-open = cannot start `{ $program }`: { $error }; open the address yourself
