import { lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseAllDocuments,
  stringify,
  type ToStringOptions,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { sealedFields } from '../../domain/config/authentication.ts';
import {
  configSecrets,
  forgivingConfig,
  mask,
  type ServerConfig,
  serverConfigSchema,
  splitSecrets,
} from '../../domain/config/server-config.ts';
import { parseJson } from '../../domain/json/json.ts';
import { yamlNumbers } from '../../domain/json/yaml-numbers.ts';
import { AppError, messageOf } from '../../errors.ts';
import { limitFieldNames } from '../../operations/limits.ts';
import { routes } from '../../routes.ts';
import { connect } from '../connection/connect.ts';
import { listedServers, oneServer } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import type { ConnectionOptions } from '../options.ts';
import { note, print, printJson } from '../print.ts';
import { writeWholeFile } from '../whole-file.ts';
import {
  type ConfigFields,
  filesInFolder,
  isDocument,
  isJsonText,
  readDocuments,
  type SecretReferences,
  serverOf,
} from './server-files.ts';

export type ExportCommandOptions = ConnectionOptions & { json?: true; out?: string; label?: string; schema?: string };

export async function exportServers(slugs: readonly string[], options: ExportCommandOptions): Promise<void> {
  const client = await connect(options);
  const wanted = slugs.length > 0 && options.label === undefined ? slugs : await chosen();
  const documents = [];
  for (const slug of new Set(wanted)) documents.push(await documentOf(client, slug));
  const schema = options.schema ?? client.url + routes.serverFileSchema;
  if (options.out === undefined) {
    if (options.json) printJson(documents);
    else if (documents.length > 0)
      print(
        documents
          .map((document) => yamlText(document, schema))
          .join('---\n')
          .trimEnd(),
      );
    return;
  }
  const exported = await exportTo(options.out, documents, schema);
  if (options.json) printJson({ files: exported });
  else for (const { slug, file, result } of exported) note(`${result.padEnd(7)}  ${slug}  ${file}`);

  async function chosen(): Promise<string[]> {
    const all = await listedServers(client);
    return all
      .filter(({ label }) => options.label === undefined || label === options.label)
      .map(({ slug }) => slug)
      .filter((slug) => slugs.length === 0 || slugs.includes(slug))
      .toSorted();
  }
}

/** YAML style: long strings stay on one line, and equal values are repeated instead of aliased. */
const yamlOptions = { lineWidth: 0, aliasDuplicateObjects: false, ...yamlNumbers } as const;

/** Formats a server as a YAML document. `schema` is the URL of the JSON Schema for editors. */
function yamlText(document: ConfigFields, schema: string | undefined): string {
  const header = schema === undefined ? '' : `# yaml-language-server: $schema=${schema}\n`;
  return header + stringify(document, yamlOptions);
}

type Exported = { slug: string; file: string; result: 'created' | 'changed' | 'same' };
type Known = { file: string; index: number; server: NonNullable<ReturnType<typeof serverOf>['server']> };

/** Reserved device names of Windows, which cannot be file names. */
const devices = new Set([
  'con',
  'prn',
  'aux',
  'nul',
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((n) => [`com${n}`, `lpt${n}`]),
]);

/** Returns true if anything exists at the path, including a dangling link. */
const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Writes servers to a folder: into the file that has the slug, or a new one.
 * @throws AppError before anything is written
 */
async function exportTo(folder: string, documents: readonly ConfigFields[], schema: string): Promise<Exported[]> {
  makeFolder(folder);
  const known = await serversIn(folder);
  const fresh = (slug: string) => join(folder, `${slug}${devices.has(slug) ? '_' : ''}.yaml`);
  const taken = documents.map(({ slug }) => String(slug)).filter((slug) => !known.has(slug) && isThere(fresh(slug)));
  if (taken[0] !== undefined)
    throw new AppError('conflict', `${fresh(taken[0])}: already exists with another server; rename it`);
  return documents.map((document) => {
    const slug = String(document.slug);
    const found = known.get(slug);
    if (found) return { slug, file: found.file, result: update(found, document) };
    writeWholeFile(fresh(slug), yamlText(document, schema));
    return { slug, file: fresh(slug), result: 'created' };
  });
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new AppError('unavailable', `${folder}: cannot be written: ${messageOf(error)}`);
  }
}

async function serversIn(folder: string): Promise<Map<string, Known>> {
  const known = new Map<string, Known>();
  for (const file of filesInFolder(folder)) {
    const { documents, problems } = await readDocuments(file);
    const [problem] = problems;
    if (problem) throw new AppError('invalid', `${problem.at}: ${problem.message}; nothing was written`);
    for (const document of documents) {
      const { server } = serverOf(document);
      if (!server) continue;
      const before = known.get(server.slug);
      if (before) throw new AppError('conflict', `${server.at}: slug: "${server.slug}" is already in ${before.file}`);
      known.set(server.slug, { file, index: document.index, server });
    }
  }
  return known;
}

function update({ file, index, server }: Known, exported: ConfigFields): 'changed' | 'same' {
  const document = keepingSources(exported, server.secrets);
  const before = meaningOf({ ...server.config, ...sectionsOf(server) });
  if (JSON.stringify(before) === JSON.stringify(document)) return 'same';
  const text = readFileSync(file, 'utf8');
  writeWholeFile(
    file,
    isJsonText(file, text) ? newJson(text, index, document) : newYaml(text, { index, before, document }),
  );
  return 'changed';
}

function sectionsOf({ secrets, limits }: Known['server']): ConfigFields {
  return { ...(Object.keys(secrets).length > 0 && { secrets }), ...(limits && { limits }) };
}

/** Normalizes a document of a file: adds defaults and orders the fields. */
function meaningOf({ secrets, limits, ...config }: ConfigFields): ConfigFields {
  const parsed = serverConfigSchema.safeParse(forgivingConfig(config));
  const { tools, ...fields } = parsed.success ? splitSecrets(parsed.data).masked : config;
  return { ...fields, ...(secrets !== undefined && { secrets }), ...(limits !== undefined && { limits }), tools };
}

function newJson(text: string, index: number, document: ConfigFields): string {
  const value = parseJson(text.replace(/^\u{feff}/u, ''));
  const next = Array.isArray(value) ? value.with(index, document) : document;
  return `${JSON.stringify(next, undefined, 2)}\n`;
}

type Replacement = { index: number; before: ConfigFields; document: ConfigFields };

function newYaml(text: string, { index, before, document }: Replacement): string {
  const all = [...parseAllDocuments(text, yamlNumbers)] as Document[];
  const at = all.filter((one) => one.toJS() !== null)[index] as Document;
  mergeYaml(at, before, document);
  // Rewrites a document that could not be merged.
  const isRight = JSON.stringify(meaningOf(at.toJS() as ConfigFields)) === JSON.stringify(document);
  if (!isRight) at.contents = at.createNode(document, yamlOptions) as typeof at.contents;
  return all.map((one) => one.toString(styleOf(text))).join('');
}

/** Detects the style of a file, as far as it can be preserved. */
function styleOf(text: string): ToStringOptions {
  return {
    lineWidth: 0,
    indentSeq: !/^[\w"']+:[ \t]*\n(?:[ \t]*#.*\n)*- /m.test(text),
    flowCollectionPadding: !/\{\S/.test(text),
  };
}

/** Normalized value of the file, and the value that it should have. */
type Change = { before: unknown; after: unknown };

/**
 * Changes a YAML document so that its normalized value is `after`. Unchanged values keep their text and comments, and
 * fields that are absent because they equal the default stay absent.
 */
function mergeYaml(document: Document, before: ConfigFields, after: ConfigFields): void {
  resolveAliases(document);
  document.contents = merged(document, document.contents, { before, after }) as typeof document.contents;
}

/** Replaces aliases with copies, because a change to the anchored value would affect other fields. */
function resolveAliases(document: Document): void {
  let hasAlias = false;
  visit(document, {
    Alias(_key, alias) {
      hasAlias = true;
      return alias.resolve(document)?.clone() as Node | undefined;
    },
  });
  if (!hasAlias) return;
  visit(document, {
    Node(_key, node) {
      delete (node as { anchor?: string }).anchor;
    },
  });
}

function merged(document: Document, node: unknown, { before, after }: Change): unknown {
  if (JSON.stringify(before) === JSON.stringify(after)) return node;
  if (isMap(node) && isDocument(before) && isDocument(after)) return mergedMap(document, node, { before, after });
  if (isSeq(node) && Array.isArray(before) && Array.isArray(after))
    return mergedList(document, node, { before, after });
  if (isScalar(node) && !isCollection(document.createNode(after))) {
    // A blank string in block style would be read as empty.
    const isBlank = typeof after === 'string' && after.trim() === '';
    if (typeof node.value !== typeof after || isBlank) delete node.type;
    node.value = after;
    return node;
  }
  return withComments(document.createNode(after), node);
}

function withComments(made: Node, old: unknown): Node {
  const { commentBefore, comment } = (old ?? {}) as Node;
  if (commentBefore) made.commentBefore = commentBefore;
  if (comment) made.comment = comment;
  return made;
}

function mergedMap(
  document: Document,
  map: YAMLMap,
  { before, after }: { before: ConfigFields; after: ConfigFields },
): YAMLMap {
  const names = Object.keys(after);
  const wanted = new Set(names);
  map.items = map.items.filter((pair) => wanted.has(keyOf(pair)));
  const pairs = new Map(map.items.map((pair) => [keyOf(pair), pair]));
  for (const [index, name] of names.entries()) {
    const pair = pairs.get(name);
    if (pair) {
      pair.value = merged(document, pair.value, { before: before[name], after: after[name] });
    } else if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) {
      // Inserted after its predecessor, so that the order of arguments is preserved.
      const previous = names.slice(0, index).findLast((known) => pairs.has(known));
      const location = previous === undefined ? 0 : map.items.findIndex((known) => keyOf(known) === previous) + 1;
      const made = document.createPair(name, after[name]) as Pair;
      pairs.set(name, made);
      map.items.splice(location, 0, made);
    }
  }
  const common = Object.keys(before).filter((name) => wanted.has(name));
  const isMoved = names.filter((name) => Object.hasOwn(before, name)).some((name, index) => name !== common[index]);
  if (isMoved) map.items.sort((a, b) => names.indexOf(keyOf(a)) - names.indexOf(keyOf(b)));
  return map;
}

/** Merges a list. Items with a name are matched by name, others by index. */
function mergedList(
  document: Document,
  list: YAMLSeq,
  { before, after }: { before: unknown[]; after: unknown[] },
): YAMLSeq {
  const known = before.map((item, index) => nameIn(item) ?? index);
  list.items = after.map((item, index) => {
    const at = known.indexOf(nameIn(item) ?? index);
    const node = at < 0 ? undefined : list.items[at];
    return node === undefined ? document.createNode(item) : merged(document, node, { before: before[at], after: item });
  });
  return list;
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

function nameIn(item: unknown): string | undefined {
  return isDocument(item) && typeof item.name === 'string' ? item.name : undefined;
}

/** Reads everything that the service stores about a server, in the form of a file. Secrets are listed by name only. */
async function documentOf(client: RestClient, slug: string): Promise<ConfigFields> {
  const { config, secrets } = await oneServer(client, slug);
  const limits = await client.run('getServerLimits', { slug });
  const set = limitFieldNames.flatMap((field) => {
    const value = limits[field]?.set;
    return value === undefined ? [] : [[field, value] as const];
  });
  const { tools, ...fields } = config;
  const names = [...sealedPaths(config as unknown as ServerConfig), ...secrets];
  return {
    ...fields,
    ...(names.length > 0 && { secrets: Object.fromEntries(names.map((name) => [name, 'stored'])) }),
    ...(set.length > 0 && { limits: Object.fromEntries(set) }),
    tools,
  };
}

function sealedPaths(config: ServerConfig): string[] {
  const sealed = sealedFields(config).filter(({ value }) => value === mask);
  return [
    ...(config.oauth?.client_secret !== undefined ? [configSecrets.clientSecret] : []),
    ...sealed.map(({ path }) => path),
  ];
}

/** Returns the exported document with the secret sources that the existing file names. */
function keepingSources(document: ConfigFields, known: SecretReferences): ConfigFields {
  const { tools, limits, secrets, ...fields } = document;
  const all = { ...known };
  for (const name of Object.keys((secrets ?? {}) as SecretReferences)) all[name] ??= 'stored';
  return {
    ...fields,
    ...(Object.keys(all).length > 0 && { secrets: all }),
    ...(limits !== undefined && { limits }),
    tools,
  };
}
