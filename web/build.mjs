/** Bundle the page into the Python package; `--check` compares with what is there and writes nothing. */
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../src/oscar_causal/report/bundle");
const entries = { report: "src/report.ts", live: "src/live/live.ts", page: "src/styles/index.css" };

const result = await build({
  absWorkingDir: here,
  entryPoints: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(join(here, file)))),
  outdir: "bundle",
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: ["es2022"],
  legalComments: "none",
  metafile: true,
  write: false,
});

const files = new Map(result.outputFiles.map((file) => [file.path.split("/").pop(), file.text]));
files.set("NOTICES.txt", notices(result.metafile));

if (process.argv.includes("--check")) {
  const there = existsSync(out) ? readdirSync(out).filter((name) => name !== "__init__.py") : [];
  const names = [...new Set([...files.keys(), ...there])];
  const different = names.filter((name) => !there.includes(name) || readFileSync(join(out, name), "utf8") !== files.get(name));
  if (different.length) {
    console.error(`report/bundle differs from web/src: ${different.join(", ")}; run: npm run build`);
    process.exit(1);
  }
  console.log(`report/bundle is what web/src gives (${names.join(", ")})`);
} else {
  mkdirSync(out, { recursive: true });
  for (const [name, text] of files) {
    writeFileSync(join(out, name), text);
    console.log(`${name}: ${Buffer.byteLength(text).toLocaleString("en")} bytes`);
  }
}

/** Name, version and licence text of every package that left code in a bundle. */
function notices(metafile) {
  const used = new Set();
  for (const file of Object.keys(metafile.inputs)) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file);
    if (found) used.add(found[1]);
  }
  const parts = [...used].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    if (!licence) throw new Error(`${name}: no licence file`);
    return `${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, licence), "utf8").trim()}\n`;
  });
  return `The page bundles the following packages.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
