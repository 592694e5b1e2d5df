import { lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import { yamlNumberOptions } from '@toolhost/json/yaml-numbers';
import { limitFieldNames } from '@toolhost/limits/call-limits';
import { routes } from '@toolhost/server/command-line';
import { sealedFields } from '@toolhost/tool-config/authentication';
import {
  configSecrets,
  mask,
  normalizeConfig,
  type ServerConfig,
  serverConfigSchema,
  splitSecrets,
} from '@toolhost/tool-config/server-config';
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
import { writeFileAtomically } from '../atomic-file.ts';
import { connect } from '../connection/connect.ts';
import { readServerList, readServerWithConfig } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { explainFileError } from '../file-errors.ts';
import type { ConnectionOptions } from '../options.ts';
import { print, printJson, printMessage } from '../print.ts';
import {
  type ConfigFields,
  isDocument,
  isJsonFile,
  listFilesInFolder,
  readDocuments,
  type SecretReferences,
  toServer,
} from './server-files.ts';

export type ExportCommandOptions = ConnectionOptions & { json?: true; out?: string; label?: string; schema?: string };

export async function exportServers(slugs: readonly string[], options: ExportCommandOptions): Promise<void> {
  const client = await connect(options);
  const requestedSlugs = slugs.length > 0 && options.label === undefined ? slugs : await getSelectedSlugs();
  const documents = [];
  for (const slug of new Set(requestedSlugs)) documents.push(await readServerDocument(client, slug));
  const schema = options.schema ?? client.url + routes.serverFileSchema;
  if (options.out === undefined) {
    if (options.json) printJson(documents);
    else if (documents.length > 0)
      print(
        documents
          .map((document) => formatYaml(document, schema))
          .join('---\n')
          .trimEnd(),
      );
    return;
  }
  const exported = await exportTo(options.out, documents, schema);
  if (options.json) printJson({ files: exported });
  else for (const { slug, file, result } of exported) printMessage(`${result.padEnd(7)}  ${slug}  ${file}`);

  async function getSelectedSlugs(): Promise<string[]> {
    const servers = await readServerList(client);
    return servers
      .filter(({ label }) => options.label === undefined || label === options.label)
      .map(({ slug }) => slug)
      .filter((slug) => slugs.length === 0 || slugs.includes(slug))
      .toSorted();
  }
}

/** YAML style: long strings stay on one line, and equal values are repeated instead of aliased. */
const yamlOptions = { lineWidth: 0, aliasDuplicateObjects: false, ...yamlNumberOptions } as const;

/** Formats a server as a YAML document. `schema` is the URL of the JSON Schema for editors. */
function formatYaml(document: ConfigFields, schema: string | undefined): string {
  const header = schema === undefined ? '' : `# yaml-language-server: $schema=${schema}\n`;
  return header + stringify(document, yamlOptions);
}

type ExportResult = { slug: string; file: string; result: 'created' | 'changed' | 'same' };
type ExistingServer = { file: string; index: number; server: NonNullable<ReturnType<typeof toServer>['server']> };

/** Reserved device names of Windows, which cannot be file names. */
const windowsDeviceNames = new Set([
  'con',
  'prn',
  'aux',
  'nul',
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((n) => [`com${n}`, `lpt${n}`]),
]);

/** Returns true if anything exists at the path, including a dangling link. */
const pathExists = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Writes servers to a folder: into the file that has the slug, or a new one.
 * @throws AppError before anything is written
 */
async function exportTo(folder: string, documents: readonly ConfigFields[], schema: string): Promise<ExportResult[]> {
  createFolder(folder);
  const existingServers = await readExistingServers(folder);
  const getNewFile = (slug: string) => join(folder, `${slug}${windowsDeviceNames.has(slug) ? '_' : ''}.yaml`);
  const takenSlugs = documents
    .map(({ slug }) => String(slug))
    .filter((slug) => !existingServers.has(slug) && pathExists(getNewFile(slug)));
  if (takenSlugs[0] !== undefined)
    throw new AppError('conflict', `${getNewFile(takenSlugs[0])}: already exists with another server; rename it`);
  return documents.map((document) => {
    const slug = String(document.slug);
    const existing = existingServers.get(slug);
    if (existing) return { slug, file: existing.file, result: updateFile(existing, document) };
    writeFileAtomically(getNewFile(slug), formatYaml(document, schema));
    return { slug, file: getNewFile(slug), result: 'created' };
  });
}

function createFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new AppError('unavailable', `${folder}: cannot be written: ${explainFileError(error)}`);
  }
}

async function readExistingServers(folder: string): Promise<Map<string, ExistingServer>> {
  const existingServers = new Map<string, ExistingServer>();
  for (const file of listFilesInFolder(folder)) {
    const { documents, problems } = await readDocuments(file);
    const [problem] = problems;
    if (problem) throw new AppError('invalid', `${problem.at}: ${problem.message}; nothing was written`);
    for (const document of documents) {
      const { server } = toServer(document);
      if (!server) continue;
      const previous = existingServers.get(server.slug);
      if (previous)
        throw new AppError('conflict', `${server.at}: slug: "${server.slug}" is already in ${previous.file}`);
      existingServers.set(server.slug, { file, index: document.index, server });
    }
  }
  return existingServers;
}

function updateFile({ file, index, server }: ExistingServer, exported: ConfigFields): 'changed' | 'same' {
  const document = addExistingSources(exported, server.secrets);
  const normalized = normalizeDocument({ ...server.config, ...toSections(server) });
  if (JSON.stringify(normalized) === JSON.stringify(document)) return 'same';
  const text = readFileSync(file, 'utf8');
  writeFileAtomically(
    file,
    isJsonFile(file, text)
      ? updateJson(text, index, document)
      : updateYaml(text, { index, before: normalized, document }),
  );
  return 'changed';
}

function toSections({ secrets, limits }: ExistingServer['server']): ConfigFields {
  return { ...(Object.keys(secrets).length > 0 && { secrets }), ...(limits && { limits }) };
}

/** Normalizes a document of a file: adds defaults and orders the fields. */
function normalizeDocument({ secrets, limits, ...config }: ConfigFields): ConfigFields {
  const parsed = serverConfigSchema.safeParse(normalizeConfig(config));
  const { tools, ...fields } = parsed.success ? splitSecrets(parsed.data).masked : config;
  return { ...fields, ...(secrets !== undefined && { secrets }), ...(limits !== undefined && { limits }), tools };
}

function updateJson(text: string, index: number, document: ConfigFields): string {
  const value = parseJson(text.replace(/^\u{feff}/u, ''));
  const updated = Array.isArray(value) ? value.with(index, document) : document;
  return `${JSON.stringify(updated, undefined, 2)}\n`;
}

type Replacement = { index: number; before: ConfigFields; document: ConfigFields };

function updateYaml(text: string, { index, before, document }: Replacement): string {
  const documents = [...parseAllDocuments(text, yamlNumberOptions)] as Document[];
  const target = documents.filter((item) => item.toJS() !== null)[index] as Document;
  mergeYaml(target, before, document);
  // Rewrites a document that could not be merged.
  const isMerged = JSON.stringify(normalizeDocument(target.toJS() as ConfigFields)) === JSON.stringify(document);
  if (!isMerged) target.contents = target.createNode(document, yamlOptions) as typeof target.contents;
  return documents.map((item) => item.toString(detectStyle(text))).join('');
}

/** Detects the style of a file, as far as it can be preserved. */
function detectStyle(text: string): ToStringOptions {
  return {
    lineWidth: 0,
    // Matches a field whose list items are not indented, with or without comments in between.
    indentSeq: !/^[\w"']+:[ \t]*\n(?:[ \t]*#.*\n)*- /m.test(text),
    flowCollectionPadding: !/\{\S/.test(text),
  };
}

/** Normalized value in the file, and its new value. */
type ValueChange = { before: unknown; after: unknown };

/**
 * Changes a YAML document so that its normalized value is `after`. Unchanged values keep their text and comments, and
 * fields that are absent because they equal the default stay absent.
 */
function mergeYaml(document: Document, before: ConfigFields, after: ConfigFields): void {
  resolveAliases(document);
  document.contents = mergeNode(document, document.contents, { before, after }) as typeof document.contents;
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

function mergeNode(document: Document, node: unknown, { before, after }: ValueChange): unknown {
  if (JSON.stringify(before) === JSON.stringify(after)) return node;
  if (isMap(node) && isDocument(before) && isDocument(after)) return mergeMap(document, node, { before, after });
  if (isSeq(node) && Array.isArray(before) && Array.isArray(after)) return mergeList(document, node, { before, after });
  if (isScalar(node) && !isCollection(document.createNode(after))) {
    // A blank string in block style would be read as empty.
    const isBlankString = typeof after === 'string' && after.trim() === '';
    if (typeof node.value !== typeof after || isBlankString) delete node.type;
    node.value = after;
    return node;
  }
  return copyComments(document.createNode(after), node);
}

function copyComments(newNode: Node, oldNode: unknown): Node {
  const { commentBefore, comment } = (oldNode ?? {}) as Node;
  if (commentBefore) newNode.commentBefore = commentBefore;
  if (comment) newNode.comment = comment;
  return newNode;
}

function mergeMap(
  document: Document,
  map: YAMLMap,
  { before, after }: { before: ConfigFields; after: ConfigFields },
): YAMLMap {
  const keys = Object.keys(after);
  map.items = map.items.filter((pair) => Object.hasOwn(after, getKey(pair)));
  const pairs = new Map(map.items.map((pair) => [getKey(pair), pair]));
  for (const [index, key] of keys.entries()) {
    const pair = pairs.get(key);
    if (pair) {
      pair.value = mergeNode(document, pair.value, { before: before[key], after: after[key] });
    } else if (JSON.stringify(before[key]) !== JSON.stringify(after[key])) {
      // Inserts the pair after its predecessor, so that the order of arguments is preserved.
      const previousKey = keys.slice(0, index).findLast((candidate) => pairs.has(candidate));
      const position = previousKey === undefined ? 0 : map.items.findIndex((item) => getKey(item) === previousKey) + 1;
      const newPair = document.createPair(key, after[key]) as Pair;
      pairs.set(key, newPair);
      map.items.splice(position, 0, newPair);
    }
  }
  const oldOrder = Object.keys(before).filter((key) => Object.hasOwn(after, key));
  const newOrder = keys.filter((key) => Object.hasOwn(before, key));
  const isReordered = newOrder.some((key, index) => key !== oldOrder[index]);
  if (isReordered) map.items.sort((a, b) => keys.indexOf(getKey(a)) - keys.indexOf(getKey(b)));
  return map;
}

/** Merges a list. Items with a name are matched by name, others by index. */
function mergeList(
  document: Document,
  list: YAMLSeq,
  { before, after }: { before: unknown[]; after: unknown[] },
): YAMLSeq {
  const oldKeys = before.map((item, index) => getItemName(item) ?? index);
  list.items = after.map((item, index) => {
    const oldIndex = oldKeys.indexOf(getItemName(item) ?? index);
    const node = oldIndex < 0 ? undefined : list.items[oldIndex];
    return node === undefined
      ? document.createNode(item)
      : mergeNode(document, node, { before: before[oldIndex], after: item });
  });
  return list;
}

function getKey({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

function getItemName(item: unknown): string | undefined {
  return isDocument(item) && typeof item.name === 'string' ? item.name : undefined;
}

/** Reads a server from the service, in the form of a file. Secrets are listed by name only. */
async function readServerDocument(client: RestClient, slug: string): Promise<ConfigFields> {
  const { config, secrets } = await readServerWithConfig(client, slug);
  const limits = await client.run('getServerLimits', { slug });
  const limitEntries = limitFieldNames.flatMap((field) => {
    const value = limits[field]?.set;
    return value === undefined ? [] : [[field, value] as const];
  });
  const { tools, ...fields } = config;
  const names = [...getSealedPaths(config as unknown as ServerConfig), ...secrets];
  return {
    ...fields,
    ...(names.length > 0 && { secrets: Object.fromEntries(names.map((name) => [name, 'stored'])) }),
    ...(limitEntries.length > 0 && { limits: Object.fromEntries(limitEntries) }),
    tools,
  };
}

function getSealedPaths(config: ServerConfig): string[] {
  const maskedFields = sealedFields(config).filter(({ value }) => value === mask);
  return [
    ...(config.oauth?.client_secret !== undefined ? [configSecrets.clientSecret] : []),
    ...maskedFields.map(({ path }) => path),
  ];
}

/** Adds the secret sources of the existing file to the exported document. */
function addExistingSources(document: ConfigFields, existingSources: SecretReferences): ConfigFields {
  const { tools, limits, secrets, ...fields } = document;
  const sources = { ...existingSources };
  for (const name of Object.keys((secrets ?? {}) as SecretReferences)) sources[name] ??= 'stored';
  return {
    ...fields,
    ...(Object.keys(sources).length > 0 && { secrets: sources }),
    ...(limits !== undefined && { limits }),
    tools,
  };
}
