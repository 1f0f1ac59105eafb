// Writes the AI SDK's own schemas of messages as JSON Schema, one file a version, for the tests of the wires.
//
//   npm install ai@7 && node export.mjs node_modules ai-sdk-7.json
//
// The first argument is the folder that the package `ai` is installed in, the second the file to write. The schema of
// interface messages is not exported by the package; so a copy of its bundle is made beside it that exports it, and
// read. Checks that are code have no form in JSON Schema and are left out: that a message which is not the
// assistant's has a part, and that metadata are JSON, which whatever comes from a file is. What is no JSON value
// (bytes, URL objects) is refused; and interface messages may have no key that the SDK does not know.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, target] = [resolve(process.argv[2]), process.argv[3]];
const home = join(folder, "ai");
const about = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
const bundle = ["index.mjs", "index.js"].map((name) => join(home, "dist", name)).find(isModule);
const copy = join(home, "dist", "with-schemas.mjs");

function isModule(path) {
  try {
    return readFileSync(path, "utf8").includes("\nexport {");
  } catch {
    return false;
  }
}

// Since version 7 lists are checked element by element, by a schema that is chosen for each one: every choice is asked
// for, and a list is one of any of them.
const LISTS = /function arrayUntilFirstInvalidElement\((\w+)\) \{[\s\S]*?\n\}/;
const KINDS = ["data-", "tool-", "dynamic-tool", "text"];

function withSchemas(text) {
  const prefix = /\b(z\$1)\.array\(/.exec(text)?.[1] ?? "z";
  const listed = `function arrayUntilFirstInvalidElement(select) {
    const chosen = [...new Set(${JSON.stringify(KINDS)}.map((type) => select({ type })))];
    return ${prefix}.array(chosen.length > 1 ? ${prefix}.union(chosen) : chosen[0]);
  }`;
  return `${text.replace(LISTS, () => listed)}\nexport { uiMessagesSchema };\n`;
}

const { toJSONSchema } = createRequire(join(home, "package.json"))("zod/v4");
const options = {
  io: "input",
  target: "draft-2020-12",
  unrepresentable: "any",
  override: ({ zodSchema, jsonSchema }) => {
    if (zodSchema._zod.def.type === "custom") jsonSchema.not = {};
  },
};

writeFileSync(copy, withSchemas(readFileSync(bundle, "utf8")));
try {
  const sdk = await import(pathToFileURL(copy).href);
  const schemas = {
    $comment: `Derived from ${about.name} ${about.version}, Copyright 2023 Vercel, Inc., licensed under ${about.license}.`,
    package: about.name,
    version: about.version,
    license: about.license,
    modelMessage: toJSONSchema(sdk.modelMessageSchema, options),
    uiMessages: await sdk.uiMessagesSchema().jsonSchema,
  };
  writeFileSync(target, `${JSON.stringify(schemas)}\n`);
} finally {
  rmSync(copy);
}
