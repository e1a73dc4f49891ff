// How fast does Orama insert and search the same chunks? Called by engine_orama.py:
//   node orama_peer.mjs FOLDER COUNT...
// FOLDER holds chunks.jsonl, vectors.f32, queries.jsonl, queries.f32 and node_modules.
// Prints {"inserts": {"single": {count: rate}, "batches": {count: rate}}, "hybrid_ms": [...]}, the
// rates in chunks a second.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...sizes] = process.argv.slice(2);
const { create, insert, insertMultiple, search } = await import(
  pathToFileURL(createRequire(join(folder, "package.json")).resolve("@orama/orama")).href
);

const DIM = 384;
const BATCH = 500;
const LIMIT = 10;
const ROUNDS = 5; // odd: the median of a question's rounds counts

const lines = (name) =>
  readFileSync(join(folder, name), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
const vectors = (name) => {
  const bytes = readFileSync(join(folder, name));
  const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  return Array.from({ length: values.length / DIM }, (_, row) =>
    Array.from(values.subarray(row * DIM, (row + 1) * DIM)),
  );
};
const database = () =>
  create({
    schema: {
      path: "string",
      headlines: "string",
      context: "string",
      content: "string",
      contentHash: "string",
      lastModified: "number",
      embedding: `vector[${DIM}]`,
    },
  });

const embeddings = vectors("vectors.f32");
const chunks = lines("chunks.jsonl").map((chunk, row) => ({ ...chunk, embedding: embeddings[row] }));
const inserts = { single: {}, batches: {} };

for (const size of sizes.map(Number)) {
  const some = chunks.slice(0, size);
  const one = database();
  let begin = performance.now();
  for (const chunk of some) await insert(one, chunk);
  inserts.single[size] = (1000 * some.length) / (performance.now() - begin);
}

let all;
for (const size of sizes.map(Number)) {
  const some = chunks.slice(0, size);
  all = database();
  const begin = performance.now();
  await insertMultiple(all, some, BATCH);
  inserts.batches[size] = (1000 * some.length) / (performance.now() - begin);
}

const asked = vectors("queries.f32");
const queries = lines("queries.jsonl").map((term, row) => ({
  mode: "hybrid",
  term,
  vector: { value: asked[row], property: "embedding" },
  limit: LIMIT,
}));
const taken = queries.map(() => []);
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const [number, query] of queries.entries()) {
    const begin = performance.now();
    await search(all, query);
    if (round > 0) taken[number].push(performance.now() - begin);
  }
}
const hybrid_ms = taken.map((each) => each.sort((one, other) => one - other)[(ROUNDS - 1) / 2]);
console.log(JSON.stringify({ inserts, hybrid_ms }));
