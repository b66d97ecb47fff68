// Writes data/zod_schemas.jsonl: the JSON schemas that zod 4 and zod-to-json-schema make of ordinary zod schemas.
// Run it in a folder where both packages are installed: node make_zod_schemas.mjs > data/zod_schemas.jsonl
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const { z } = require("zod");
const z3 = require("zod/v3").z;
const { zodToJsonSchema } = require("zod-to-json-schema");

const cat = (z) => z.object({ kind: z.literal("cat"), meows: z.number() });
const dog = (z) => z.object({ kind: z.enum(["dog", "hound"]), barks: z.boolean() });
const both = {
  scalars: (z) => z.object({ s: z.string(), n: z.number(), b: z.boolean(), nil: z.null() }),
  optional: (z) => z.object({ a: z.string().optional(), b: z.number().nullable(), c: z.string().nullish() }),
  defaults: (z) => z.object({ a: z.string().default("x"), b: z.number().default(3) }),
  bounds: (z) => z.object({ a: z.number().int(), b: z.number().gt(0).lte(10), c: z.number().multipleOf(0.5), d: z.number().positive() }),
  strings: (z) => z.object({ a: z.string().min(1).max(5), b: z.string().regex(/^[a-z]+\d+$/), c: z.string().length(3), d: z.string().startsWith("a"), e: z.string().endsWith("z"), f: z.string().includes("m") }),
  formats: (z) => z.object({ a: z.string().email(), b: z.string().url(), c: z.string().uuid(), d: z.string().datetime(), e: z.string().date(), f: z.string().time() }),
  moreFormats: (z) => z.object({ a: z.string().duration(), b: z.string().base64(), c: z.string().cuid(), d: z.string().nanoid(), e: z.string().ulid() }),
  arrays: (z) => z.object({ a: z.array(z.string()), b: z.array(z.number()).min(1).max(3), c: z.array(z.array(z.boolean())), d: z.array(z.any()) }),
  tuples: (z) => z.object({ a: z.tuple([z.string(), z.number()]), b: z.tuple([z.string()]).rest(z.number()) }),
  records: (z) => z.object({ a: z.record(z.string(), z.number()), b: z.record(z.string().regex(/^x-/), z.string()) }),
  enums: (z) => z.object({ a: z.enum(["x", "y"]), b: z.literal(5), c: z.literal(true), d: z.nativeEnum({ Red: "red", Blue: 2 }) }),
  unions: (z) => z.object({ a: z.union([z.string(), z.number()]), b: z.union([z.literal("a"), z.literal("b")]), c: z.union([cat(z), dog(z)]) }),
  discriminated: (z) => z.object({ pet: z.discriminatedUnion("kind", [cat(z), dog(z)]) }),
  nested: (z) => z.object({ a: z.object({ b: z.object({ c: z.array(z.object({ d: z.string() })) }) }) }),
  strict: (z) => z.object({ a: z.string() }).strict(),
  passthrough: (z) => z.object({ a: z.string() }).passthrough(),
  catchall: (z) => z.object({ a: z.string() }).catchall(z.number()),
  described: (z) => z.object({ a: z.string().describe("the first"), b: z.number().describe("the second") }).describe("both"),
  anything: (z) => z.object({ a: z.any(), b: z.unknown() }),
  never: (z) => z.object({ a: z.string(), b: z.never().optional() }),
  extended: (z) => cat(z).extend({ name: z.string() }).omit({ meows: true }),
  partial: (z) => cat(z).partial(),
  intersection: (z) => z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })),
  refined: (z) => z.object({ a: z.string().refine((s) => s.length > 1), b: z.number().transform((n) => n).pipe(z.number()) }),
  recursive: (z) => { const node = z.object({ value: z.number(), children: z.lazy(() => z.array(node)) }); return node; },
  shared: (z) => { const point = z.object({ x: z.number(), y: z.number() }); return z.object({ from: point, to: point, via: z.array(point) }); },
  readonly: (z) => z.object({ a: z.array(z.string()).readonly() }),
  caught: (z) => z.object({ a: z.number().catch(1) }),
  root: (z) => z.array(z.object({ id: z.string() })),
  calendar: (z) => z.object({ name: z.string(), date: z.string(), participants: z.array(z.string()) }),
  math: (z) => z.object({ steps: z.array(z.object({ explanation: z.string(), output: z.string() })), final_answer: z.string() }),
};
const only4 = {
  ints: (z) => z.object({ a: z.int(), b: z.int32(), c: z.uint32(), d: z.float32(), e: z.float64() }),
  formats4: (z) => z.object({ a: z.email(), b: z.uuidv4(), c: z.url(), d: z.ipv4(), e: z.ipv6(), f: z.iso.datetime(), g: z.iso.date(), h: z.iso.time(), i: z.iso.duration() }),
  formats5: (z) => z.object({ a: z.base64url(), b: z.cidrv4(), c: z.jwt(), d: z.guid(), e: z.e164(), f: z.hex(), g: z.hostname() }),
  templates: (z) => z.object({ a: z.templateLiteral(["v", z.number(), ".", z.enum(["a", "b"])]) }),
  partialRecord: (z) => z.object({ a: z.partialRecord(z.enum(["x", "y"]), z.number()), b: z.record(z.enum(["x", "y"]), z.number()) }),
  getters: (z) => { const node = z.object({ value: z.string(), get next() { return node.nullable(); } }); return node; },
  json: (z) => z.object({ a: z.json() }),
  meta: (z) => z.object({ a: z.string().meta({ title: "A", examples: ["x"], "x-order": 1, deprecated: true }) }),
  stringbool: (z) => z.object({ a: z.literal(["x", "y", 3]), b: z.xor ? z.number() : z.number() }),
};
const only3 = {
  dates: (z) => z.object({ a: z.date(), b: z.bigint() }),
  maps: (z) => z.object({ a: z.map(z.string(), z.number()) }),
  nulls: (z) => z.object({ a: z.undefined().optional(), b: z.nan().optional() }),
};

const put = (name, schema) => console.log(JSON.stringify({ name, schema }));
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
console.log(JSON.stringify({ zod: version("zod"), "zod-to-json-schema": version("zod-to-json-schema") }));
for (const [name, make] of Object.entries({ ...both, ...only4 })) {
  put(`zod 4, ${name}`, z.toJSONSchema(make(z), { io: "input" }));
  const draft7 = z.toJSONSchema(make(z), { io: "input", target: "draft-7" });
  if (["tuples", "recursive", "enums"].includes(name)) put(`zod 4 of draft 7, ${name}`, draft7);
}
for (const [name, make] of Object.entries({ ...both, ...only3 })) {
  put(`zod-to-json-schema, ${name}`, zodToJsonSchema(make(z3)));
  if (["enums", "tuples", "optional", "bounds"].includes(name)) {
    put(`zod-to-json-schema by name, ${name}`, zodToJsonSchema(make(z3), name));
    put(`zod-to-json-schema for OpenAI, ${name}`, zodToJsonSchema(make(z3), { target: "openAi" }));
    put(`zod-to-json-schema of 2019-09, ${name}`, zodToJsonSchema(make(z3), { target: "jsonSchema2019-09" }));
  }
}
