import { existsSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { AppError, type Problem } from '@toolhost/errors/errors';
import { describeForeignDocument, describeForeignText } from '@toolhost/errors/input-errors';
import { toProblems } from '@toolhost/errors/problems';
import { decodeDocument } from '@toolhost/json/document-text';
import { parseJson } from '@toolhost/json/json';
import { yamlNumberOptions } from '@toolhost/json/yaml-numbers';
import type { LimitInputs } from '@toolhost/limits/call-limits';
import { sealedFields } from '@toolhost/tool-config/authentication';
import { configSecrets, mask, normalizeConfig, serverConfigSchema } from '@toolhost/tool-config/server-config';
import { fileSections, type SecretReference } from '@toolhost/tool-config/server-file';
import { toCommandTerms } from '../command-terms.ts';
import { createSyntaxError, explainFileError } from '../file-errors.ts';

/** Document of a file. `at` names it in messages: the file, with a number if the file has several documents. */
export type FileDocument = { file: string; at: string; index: number; value: unknown };
export type FileProblem = { at: string; path: string; message: string };

/** Lists the configuration files of a folder, sorted by name. A file or an empty folder is returned unchanged. */
export function listFiles(path: string): string[] {
  if (!isFolder(path)) return [path];
  const files = listFilesInFolder(path);
  return files.length > 0 ? files : [path];
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

const emptyFolderMessage =
  'is a folder without .json, .yaml, or .yml files. Name a file, or the folder that has the files';

/** Lists the configuration files directly in a folder, sorted by name. */
export function listFilesInFolder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && /^[^.].*\.(json|ya?ml)$/.test(entry.name))
    .map(({ name }) => join(folder, name))
    .toSorted();
}

/** Reads all documents of a file: YAML documents separated by `---`, or a JSON object or array of objects. */
export async function readDocuments(file: string): Promise<{ documents: FileDocument[]; problems: FileProblem[] }> {
  if (isFolder(file)) return { documents: [], problems: [{ at: file, path: '', message: emptyFolderMessage }] };
  if (file !== '-' && isLinkOutside(file))
    return { documents: [], problems: [{ at: file, path: '', message: outsideLinkMessage }] };
  try {
    const values = await parseValues(file, await readConfigText(file));
    const formatName = (index: number) => (values.length > 1 ? `${file} (document ${index + 1})` : file);
    return {
      documents: values.map((value, index) => ({ file, at: formatName(index), index, value: dropSchema(value) })),
      problems: [],
    };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { documents: [], problems: [{ at: file, path: '', message: error.message.replace(`${file}: `, '') }] };
  }
}

/** Removes `$schema`, which only editors use. */
function dropSchema(value: unknown): unknown {
  if (!isDocument(value)) return value;
  const { $schema: _, ...document } = value;
  return document;
}

/** Links out of the folder are rejected, because messages quote the file and a pull request could choose the target. */
const outsideLinkMessage =
  'is a link to a file outside its folder, which is not read. Put the file itself there, or name it instead of the link';

function isLinkOutside(file: string): boolean {
  // The folder may be a link itself.
  const folder = dirname(file);
  if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() && !isInside(dirname(folder), folder)) return true;
  if (!lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return false;
  // Allows a dangling link, and a shell pipe, which has no path.
  return existsSync(file) && statSync(file).isFile() && !isInside(dirname(file), file);
}

/** Returns true if a path, with all links resolved, is inside a folder. */
export function isInside(folder: string, path: string): boolean {
  const relativePath = relative(realpathSync(folder), realpathSync(path));
  return relativePath !== '..' && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
}

async function parseValues(file: string, text: string): Promise<unknown[]> {
  // Text of another program, such as a curl command, may be valid YAML.
  if (describeForeignText(text) !== undefined) return [text];
  // JSON is also valid YAML, but the JSON parser gives better messages.
  if (isJsonFile(file, text)) {
    const value = parseOrFail(file, 'JSON', () => parseJson(text));
    return Array.isArray(value) ? value : [value];
  }
  const { parseAllDocuments } = await import('yaml');
  const documents = parseAllDocuments(text, yamlNumberOptions);
  return parseOrFail(file, 'YAML', () =>
    [...documents].map((document) => {
      if (document.errors[0]) throw document.errors[0];
      const value = document.toJS() as unknown;
      // Throws if an anchor contains itself.
      JSON.stringify(value);
      return value;
    }),
  ).filter((value) => value !== null);
}

/** Returns true if a file contains JSON rather than YAML. */
export function isJsonFile(file: string, text: string): boolean {
  return file.endsWith('.json') || /^\s*[{[]/.test(text);
}

function parseOrFail<T>(file: string, format: 'JSON' | 'YAML', parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw createSyntaxError(file, format, error);
  }
}

export type ConfigFields = { [name: string]: unknown };
export type SecretReferences = { [name: string]: SecretReference };

/** Server as described by a file: its configuration, and the sections `secrets` and `limits`. */
export type ServerFile = {
  file: string;
  at: string;
  slug: string;
  config: ConfigFields;
  secrets: SecretReferences;
  limits: LimitInputs | undefined;
};

/** Reads all servers of files and folders. Two servers with the same slug are a problem. */
export async function readServerFiles(
  paths: readonly string[],
): Promise<{ servers: ServerFile[]; problems: FileProblem[] }> {
  const servers: ServerFile[] = [];
  const problems: FileProblem[] = [];
  for (const file of new Set(paths.flatMap(listFiles))) {
    const result = await readDocuments(file);
    problems.push(...result.problems);
    for (const document of result.documents) {
      const parsed = toServer(document);
      problems.push(...parsed.problems);
      if (parsed.server) servers.push(parsed.server);
    }
  }
  return { servers, problems: [...problems, ...findTakenSlugs(servers)] };
}

export const notConfigurationMessage = 'is not a configuration; allowed: an object with name, slug, and tools';

/** Converts a document to a server, or returns its problems. */
export function toServer({ file, at, value }: FileDocument): { server?: ServerFile; problems: FileProblem[] } {
  const foreignProblem = describeForeignDocument(value);
  if (foreignProblem !== undefined) return { problems: [{ at, path: '', message: toCommandTerms(foreignProblem) }] };
  if (!isDocument(value)) {
    return { problems: [{ at, path: '', message: notConfigurationMessage }] };
  }
  const { secrets = {}, limits } = value as ConfigFields;
  const { config, problems } = splitSections(value) as { config: ConfigFields; problems: Problem[] };
  const sectionProblems = problems.map((problem) => ({ at, ...problem }));
  const { slug } = config;
  if (typeof slug !== 'string' || slug === '') {
    const message = 'names the server; allowed: the slug of a hosted server';
    return { problems: [...sectionProblems, { at, path: 'slug', message }] };
  }
  if (sectionProblems.length > 0) return { problems: sectionProblems };
  const server = {
    file,
    at,
    slug,
    config,
    secrets: secrets as SecretReferences,
    limits: limits as LimitInputs | undefined,
  };
  return { server, problems: [] };
}

/** Returns the configuration of a document, and the problems of the sections `secrets` and `limits`. */
export function splitSections(value: unknown): { config: unknown; problems: Problem[] } {
  if (!isDocument(value)) return { config: value, problems: [] };
  const { secrets: _, limits: _limits, ...config } = value;
  return { config, problems: checkSections(value) };
}

export function isDocument(value: unknown): value is ConfigFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Checks `secrets` and `limits`. Messages never repeat a value, because it may be a secret in the wrong place. */
function checkSections({ secrets, limits }: ConfigFields): Problem[] {
  const secretProblems = secrets === undefined ? [] : checkReferences(secrets, 'secrets');
  const parsed = fileSections.limits.safeParse(limits);
  if (parsed.success) return secretProblems;
  const names = Object.keys(fileSections.limits.unwrap().shape);
  const issues = parsed.error.issues.map((issue) => ({ ...issue, path: ['limits', ...issue.path] }));
  return [...secretProblems, ...toProblems(issues, { limits }, () => names)];
}

const allowedReference = 'allowed: { env: NAME }, { file: PATH }, or stored; a file must not contain the value itself';

/** Returns the problems of secret references. `path` is the path of the section. */
export function checkReferences(section: unknown, path: string): Problem[] {
  const parsed = fileSections.secrets.safeParse(section);
  if (parsed.success) return [];
  if (typeof section !== 'object' || section === null || Array.isArray(section))
    return [{ path, message: `allowed: secret names, each with its source; ${allowedReference}` }];
  return Object.entries(section).flatMap(([name, reference]) => {
    const isValid = fileSections.secrets.safeParse({ [name]: reference }).success;
    if (isValid) return [];
    const isValidName = fileSections.secrets.safeParse({ [name]: 'stored' }).success;
    const message = isValidName
      ? allowedReference
      : 'is not a secret name; allowed: NAME of {{NAME}}, or the path of a sealed field such as oauth.client_secret';
    return [{ path: `${path}.${name}`, message }];
  });
}

/** Returns the problems of servers whose slug is already taken. `owners` maps each taken slug to its file. */
export function findTakenSlugs(servers: readonly ServerFile[], owners = new Map<string, string>()): FileProblem[] {
  return servers.flatMap(({ at, slug }) => {
    const owner = owners.get(slug);
    if (owner !== undefined) return [{ at, ...createDuplicateSlugProblem(slug, owner) }];
    owners.set(slug, at);
    return [];
  });
}

export function createDuplicateSlugProblem(slug: string, firstFile: string): Problem {
  return { path: 'slug', message: `"${slug}" is already the slug in ${firstFile}` };
}

/** Returns the paths of fields that contain a credential instead of the mask. Files must refer to credentials. */
export function findLiteralSecrets(config: ConfigFields): string[] {
  const parsed = serverConfigSchema.safeParse(normalizeConfig(config));
  if (!parsed.success) return [];
  const literalFields = sealedFields(parsed.data).filter(({ value }) => value !== mask);
  const secret = parsed.data.oauth?.client_secret;
  const isLiteralSecret = secret !== undefined && secret !== mask;
  return [...(isLiteralSecret ? [configSecrets.clientSecret] : []), ...literalFields.map(({ path }) => path)];
}

export function formatLiteralMessage(path: string): string {
  return `contains a credential, which apply rejects; write "${mask}" there and ${formatSourceAdvice(path)}`;
}

export function formatSourceAdvice(path: string): string {
  return `name the source of the value in the file: secrets: {"${path}": {"env": "NAME"}}`;
}

/**
 * Reads the value of a JSON or YAML file, or the text of a document of another program. `-` is standard input.
 * @throws AppError that names the file
 */
export async function readConfigFile(path: string): Promise<unknown> {
  const content = await readConfigText(path);
  // Text of another program, such as a curl command, may be valid YAML.
  if (describeForeignText(content) !== undefined) return content;
  // JSON is also valid YAML, but the JSON parser gives better messages.
  const isJson = path.endsWith('.json') || /^\s*\{/.test(content);
  try {
    return isJson ? parseJson(content) : (await import('yaml')).parse(content, yamlNumberOptions);
  } catch (error) {
    throw createSyntaxError(path, isJson ? 'JSON' : 'YAML', error);
  }
}

/** Reads the text of a configuration file. `-` is standard input. @throws AppError that names the file */
export async function readConfigText(path: string): Promise<string> {
  const content = (path === '-' ? await readText(process.stdin) : await readTextFile(path)).replace(/^\u{feff}/u, '');
  if (content.trim() === '')
    throw new AppError('invalid', path === '-' ? 'standard input is empty' : `${path}: is empty`);
  checkIsText(path, content);
  return content;
}

/** @throws AppError for an image, an archive, or another binary file */
export function checkIsText(path: string, content: string): void {
  if (content.includes('\0')) throw new AppError('invalid', `${path}: is not a text file. Name a JSON or YAML file`);
}

/** Reads the text of a file. @throws AppError that names the file */
export async function readTextFile(path: string): Promise<string> {
  try {
    return decodeDocument(await readFile(path));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new AppError('notFound', `${path}: there is no such file. Check the path`);
    if (code === 'EISDIR') throw new AppError('invalid', `${path}: is a folder. Name a file`);
    throw new AppError('invalid', `${path}: cannot be read: ${explainFileError(error)}`);
  }
}
