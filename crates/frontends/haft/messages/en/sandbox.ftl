# `haft sandbox`.

sandbox-writable = writable: { $folders }, and a private /tmp
sandbox-hidden = hidden: { $paths }
sandbox-readable = also readable: { $paths }
sandbox-network-none = network: none
sandbox-network-hosts = network: the hosts of `[sandbox] network`, through a proxy
sandbox-network-all = network: unrestricted
sandbox-only-linux = there is no sandbox to test: haft has one on Linux only
sandbox-test-ended = the attempts ended with { $exit }: { $said }
sandbox-test-unavailable = { $layer }: not available: { $why }
sandbox-test-result = { $layer }: { $refused } attempts to leave are refused, { $worked } ordinary things work
sandbox-test-wrongly-refused = refused though ordinary
sandbox-test-noticed = noticed outside: { $noticed }
sandbox-test-impossible = cannot be done here ({ $group }, { $count }): { $names }
sandbox-test-not-held = not held by this layer ({ $group }, { $count }): { $names }
sandbox-test-open = open
