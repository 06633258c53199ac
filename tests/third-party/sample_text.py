"""Prints a megabyte of mixed text: code, prose in many scripts, numbers, JSON, white space, the odd control character.

No U+FEFF: JavaScript takes it for white space, the tokenizer's definition does not, so that the two counts differ by right.

usage: sample_text.py FOLDER     FOLDER is searched for source files to mix in
"""

import json
import pathlib
import random
import sys

random.seed(1)
SCRIPTS = [
    "The quick brown fox jumps over the lazy dog, doesn't it? I'll say: we've SEEN it's fine.",
    "Grüße aus Köln; ça va? Señor Müller naïvement façade Ångström, İstanbul'da ǅ ŉ ﬁ.",
    "世界人民大团结万岁。今日は良い天気ですね、東京へ行きましょう。안녕하세요 세계, 좋은 아침입니다.",
    "Съешь же ещё этих мягких французских булок. Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया। สวัสดีชาวโลก",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 é vs é, Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤a̴̵̞l̷g͏o, \u200b\u200d\u00ad, ﷽ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈",
    "1234567890 3.14159 1e-9 0xDEADBEEF 12,345,678.90 ٣٤٥ Ⅷ ½ ²",
    "a\tb\t\tc   d      e\r\n\r\n  \n\t\n    indented\n",
    "<|endoftext|> <|fim_prefix|> </s> [INST] ### \x00 \x1b[31mred\x1b[0m",
    "don't DON'T Don'T we'RE I'M you'd y'all'd've 'tis O'Neill's",
]


def pieces(folder):
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".rs", ".md", ".py", ".toml", ".json", ".sse"})
    sources = [path.read_text(errors="ignore") for path in files if path.stat().st_size < 60_000]
    random.shuffle(sources)
    while True:
        choice = random.random()
        if choice < 0.45 and sources:
            yield sources.pop()
        elif choice < 0.7:
            yield " ".join(random.choice(SCRIPTS) for _ in range(random.randint(1, 12)))
        elif choice < 0.85:
            yield json.dumps({"k" * random.randint(1, 9): [random.random(), random.randint(0, 10**12), random.choice(SCRIPTS)]}, ensure_ascii=random.random() < 0.5)
        else:
            yield "".join(chr(random.choice([random.randint(32, 126), random.randint(160, 0x2FFF), random.randint(0x3000, 0xD7FF), random.randint(0x1F300, 0x1FAFF)])) for _ in range(random.randint(1, 300)))


def main():
    out, size = [], 0
    for piece in pieces(pathlib.Path(sys.argv[1])):
        out.append(piece)
        size += len(piece.encode()) + 2
        if size >= 1_000_000:
            break
    sys.stdout.buffer.write("\n\n".join(out).replace("\ufeff", "").encode())


main()
