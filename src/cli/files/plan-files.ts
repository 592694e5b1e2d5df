import { AppError } from '../../errors.ts';
import type { Input, Output } from '../../operations/index.ts';
import type { RestClient } from '../connection/rest-client.ts';
import type { FileProblem } from './read-files.ts';
import { type ReadyServer, readSecrets, type Sources } from './secret-values.ts';
import { readServerFiles, type ServerFile, sourceAdvice } from './server-files.ts';

export type Plan = Output<'planMcpServer'>;
export type PlannedServer = { server: ReadyServer; plan: Plan };

type Reading = Sources & {
  label?: string | undefined;
  /** Leaves out secrets whose values cannot be read, and notes them in `unread`, instead of reporting a problem. */
  forgivesSecrets?: boolean;
};

export type Planning = { planned: PlannedServer[]; problems: FileProblem[]; unread: FileProblem[] };

/** Reads the servers of files and compares each with the service. Nothing is changed. */
export async function planFiles(
  client: Pick<RestClient, 'run'>,
  paths: readonly string[],
  reading: Reading,
): Promise<Planning> {
  const { servers, problems } = await readServerFiles(paths);
  const unknown = [...(reading.more?.keys() ?? [])].filter((slug) => !servers.some((server) => server.slug === slug));
  const strayed = unknown.map((slug) => ({
    at: '--secrets',
    path: slug,
    message: 'no file has a server of this slug',
  }));
  const planned = await planServers(client, servers, reading);
  return { ...planned, problems: [...problems, ...strayed, ...planned.problems] };
}

/** Compares servers of files with the service, one after the other. */
export async function planServers(
  client: Pick<RestClient, 'run'>,
  servers: readonly ServerFile[],
  reading: Reading,
): Promise<Planning> {
  const result: Planning = { planned: [], problems: [], unread: [] };
  for (const file of servers) {
    const { ready, problems } = readSecrets(file, reading);
    if (reading.forgivesSecrets) result.unread.push(...problems.filter(isAboutSource));
    result.problems.push(...problems.filter((problem) => !(reading.forgivesSecrets && isAboutSource(problem))));
    const plan = await planOf(client, ready, reading.label);
    if ('failure' in plan) result.problems.push(plan.failure);
    else {
      result.planned.push({ server: ready, plan });
      const all = plan.problems.map(({ path, message }) => ({ at: ready.at, path, message: adviceFor(path, message) }));
      // A field whose source cannot be read is reported once.
      result.problems.push(...all.filter(({ path }) => !problems.some((known) => known.path === `secrets.${path}`)));
    }
  }
  return result;
}

function isAboutSource({ path }: FileProblem): boolean {
  return path.startsWith('secrets.');
}

function adviceFor(path: string, message: string): string {
  return message.includes('keeps a stored value') ? `no value is stored; ${sourceAdvice(path)}` : message;
}

async function planOf(
  client: Pick<RestClient, 'run'>,
  server: ReadyServer,
  label: string | undefined,
): Promise<Plan | { failure: FileProblem }> {
  try {
    return await client.run('planMcpServer', wantedOf(server, label));
  } catch (error) {
    // Without the service or a right there is nothing to report about one file.
    if (!(error instanceof AppError) || !['invalid', 'tooLarge', 'notFound'].includes(error.kind)) throw error;
    const [first] = error.problems;
    return { failure: { at: server.at, path: first?.path ?? '', message: first?.message ?? error.message } };
  }
}

/** The wanted state of a server as the service takes it. */
export function wantedOf(server: ReadyServer, label: string | undefined): Input<'planMcpServer'> {
  const { slug, config, values, limits } = server;
  return {
    slug,
    config,
    ...(Object.keys(values).length > 0 && { secrets: values }),
    ...(limits && { limits }),
    ...(label !== undefined && { label }),
  } as Input<'planMcpServer'>;
}
