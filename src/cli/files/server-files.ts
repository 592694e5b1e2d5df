import { sealedFields } from '../../domain/config/authentication.ts';
import { configSecrets, forgivingConfig, mask, serverConfigSchema } from '../../domain/config/server-config.ts';
import { foreignDocument } from '../../domain/mistakes/foreign-document.ts';
import { problemsOf } from '../../domain/problems/problems.ts';
import type { Problem } from '../../errors.ts';
import { fileSections, type SecretReference } from '../../operations/applying/server-file.ts';
import type { LimitInputs } from '../../operations/limit-fields.ts';
import { type FileDocument, type FileProblem, filesOf, readDocuments } from './read-files.ts';

export type ConfigFields = { [name: string]: unknown };
export type SecretReferences = { [name: string]: SecretReference };

/** A server as a file describes it: its configuration, and the sections beside it. */
export type ServerFile = {
  file: string;
  at: string;
  slug: string;
  config: ConfigFields;
  secrets: SecretReferences;
  limits: LimitInputs | undefined;
};

/** Reads all servers of files and folders. Two servers with one slug are a problem of both files. */
export async function readServerFiles(
  paths: readonly string[],
): Promise<{ servers: ServerFile[]; problems: FileProblem[] }> {
  const servers: ServerFile[] = [];
  const problems: FileProblem[] = [];
  for (const file of new Set(paths.flatMap(filesOf))) {
    const read = await readDocuments(file);
    problems.push(...read.problems);
    for (const document of read.documents) {
      const found = serverOf(document);
      problems.push(...found.problems);
      if (found.server) servers.push(found.server);
    }
  }
  return { servers, problems: [...problems, ...duplicateProblems(servers)] };
}

/** Splits a document into the configuration and the other sections. */
export function serverOf({ file, at, value }: FileDocument): { server?: ServerFile; problems: FileProblem[] } {
  const foreign = foreignDocument(value);
  if (foreign !== undefined) return { problems: [{ at, path: '', message: foreign }] };
  if (!isDocument(value)) {
    const message = 'is not a configuration; allowed: an object with name, slug and tools';
    return { problems: [{ at, path: '', message }] };
  }
  const { secrets = {}, limits } = value as ConfigFields;
  const { config, problems } = splitDocument(value) as { config: ConfigFields; problems: Problem[] };
  const sections = problems.map((problem) => ({ at, ...problem }));
  const { slug } = config;
  if (typeof slug !== 'string' || slug === '') {
    const message = 'names the server; allowed: the slug of a hosted server';
    return { problems: [...sections, { at, path: 'slug', message }] };
  }
  if (sections.length > 0) return { problems: sections };
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

/** Takes the sections beside the configuration out of a document, and checks them. */
export function splitDocument(value: unknown): { config: unknown; problems: Problem[] } {
  if (!isDocument(value)) return { config: value, problems: [] };
  const { secrets: _, limits: _limits, ...config } = value;
  return { config, problems: sectionProblems(value) };
}

export function isDocument(value: unknown): value is ConfigFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Messages never repeat a value, because it may be a secret in the wrong location. */
function sectionProblems({ secrets, limits }: ConfigFields): Problem[] {
  const found = secrets === undefined ? [] : referenceProblems(secrets, 'secrets');
  const checked = fileSections.limits.safeParse(limits);
  if (checked.success) return found;
  const names = Object.keys(fileSections.limits.unwrap().shape);
  const issues = checked.error.issues.map((issue) => ({ ...issue, path: ['limits', ...issue.path] }));
  return [...found, ...problemsOf(issues, { limits }, () => names)];
}

const allowedReference = 'allowed: { env: NAME }, { file: PATH } or stored; the value itself never stands in a file';

/** Problems of references to secrets; `path` is that of the section. */
export function referenceProblems(section: unknown, path: string): Problem[] {
  const checked = fileSections.secrets.safeParse(section);
  if (checked.success) return [];
  if (typeof section !== 'object' || section === null || Array.isArray(section))
    return [{ path, message: `allowed: names of secrets, each with its source; ${allowedReference}` }];
  return Object.entries(section).flatMap(([name, reference]) => {
    const one = fileSections.secrets.safeParse({ [name]: reference });
    if (one.success) return [];
    const isName = fileSections.secrets.safeParse({ [name]: 'stored' }).success;
    const message = isName
      ? allowedReference
      : 'is no name of a secret; allowed: NAME of {{NAME}}, or the path of a sealed field such as oauth.client_secret';
    return [{ path: `${path}.${name}`, message }];
  });
}

function duplicateProblems(servers: readonly ServerFile[]): FileProblem[] {
  const first = new Map<string, ServerFile>();
  return servers.flatMap((server) => {
    const before = first.get(server.slug);
    if (!before) {
      first.set(server.slug, server);
      return [];
    }
    return [{ at: server.at, ...duplicateSlug(server.slug, before.at) }];
  });
}

/** The problem of a document whose slug another one has. */
export function duplicateSlug(slug: string, before: string): Problem {
  return { path: 'slug', message: `"${slug}" is the slug in ${before} already` };
}

/** Paths of fields that hold a credential itself, where a file may only refer to one. */
export function literalSecrets(config: ConfigFields): string[] {
  const parsed = serverConfigSchema.safeParse(forgivingConfig(config));
  if (!parsed.success) return [];
  const sealed = sealedFields(parsed.data).filter(({ value }) => value !== mask);
  const secret = parsed.data.oauth?.client_secret;
  const isLiteral = secret !== undefined && secret !== mask;
  return [...(isLiteral ? [configSecrets.clientSecret] : []), ...sealed.map(({ path }) => path)];
}

/** The message for such a field. */
export function literalMessage(path: string): string {
  return `holds a credential, which apply refuses; write "${mask}" there and ${sourceAdvice(path)}`;
}

/** The advice where a field is masked, and nothing is stored for it. */
export function sourceAdvice(path: string): string {
  return `name the source of the value in the file: secrets: {"${path}": {"env": "NAME"}}`;
}
