// Counts of npm's gpt-tokenizer (o200k_base) for a text, piece by piece, to be held against haft's own.
// usage: node gpt_tokenizer.mjs FOLDER FILE     prints the number of tokens of each paragraph, then of the whole
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, file] = process.argv.slice(2);
const { encode } = createRequire(resolve(folder, "package.json"))("gpt-tokenizer/encoding/o200k_base");
const text = readFileSync(file, "utf8");
// Names of special tokens in a text are plain words, there as here.
const plain = { disallowedSpecial: new Set() };
const counts = text.split("\n\n").map((piece) => encode(piece, plain).length);
console.log([...counts, encode(text, plain).length].join("\n"));
