# The web tools.

web-no-key = no key for the search service: the environment variable `{ $variable }` is not set; export it, or change `web.api_key_env`
