# `haft serve`.

serve-cannot-listen = cannot listen on `{ $address }`: { $error }; leave `--port` out to use a free port
serve-listening =
    { $url }
    Works only on this machine. Press Ctrl-C to stop.
serve-cannot-open = cannot start `{ $program }`: { $error }; open the URL in a browser
