import { AppError } from '@toolhost/errors/errors';
import { programName } from '@toolhost/server/command-line';
import type { Input, Output } from '@toolhost/server/operations';
import { type ListedServer, readServerList } from '../connection/lists.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { type ReadyServer, readSecrets, type SecretSource, type Sources } from './secret-values.ts';
import { type FileProblem, formatSourceAdvice, readServerFiles, type ServerFile } from './server-files.ts';

export type Plan = Output<'planMcpServer'>;
export type PlannedServer = { server: ReadyServer; plan: Plan };

type PlanOptions = Sources & {
  label?: string | undefined;
  /** Lists secrets whose values cannot be read as `unread`, not as problems. */
  allowsUnreadSecrets?: boolean;
};

/** Servers with their plans, and what is wrong with the files. `unread` lists secrets without a readable value. */
export type PlanResult = { planned: PlannedServer[]; problems: FileProblem[]; unread: FileProblem[] };

/** Reads the servers of files and compares each with the service. Changes nothing. */
export async function planFiles(
  client: RestClient,
  paths: readonly string[],
  options: PlanOptions,
): Promise<PlanResult> {
  const { servers, problems } = await readServerFiles(paths);
  const unknownSlugs = [...(options.secretsFile?.keys() ?? [])].filter(
    (slug) => !servers.some((server) => server.slug === slug),
  );
  const unknownSlugProblems = unknownSlugs.map((slug) => ({
    at: '--secrets',
    path: slug,
    message: 'no file has a server with this slug',
  }));
  const result = await planServers(client, servers, options);
  return { ...result, problems: [...problems, ...unknownSlugProblems, ...result.problems] };
}

/** Compares servers of files with the service, one by one. */
export async function planServers(
  client: RestClient,
  servers: readonly ServerFile[],
  options: PlanOptions,
): Promise<PlanResult> {
  const result: PlanResult = { planned: [], problems: [], unread: [] };
  for (const file of servers) {
    const { ready, problems } = readSecrets(file, options);
    const isAllowed = (problem: FileProblem) => options.allowsUnreadSecrets === true && isSourceProblem(problem);
    result.unread.push(...problems.filter(isAllowed));
    result.problems.push(...problems.filter((problem) => !isAllowed(problem)));
    const plan = await planServer(client, ready, options.label);
    if ('failure' in plan) result.problems.push(plan.failure);
    else {
      result.planned.push({ server: ready, plan });
      const serverProblems = plan.problems.map(({ path, message }) => ({
        at: ready.at,
        path,
        message: toAdvice(path, message),
      }));
      // A field whose source cannot be read has already been reported.
      result.problems.push(
        ...serverProblems.filter(({ path }) => !problems.some((problem) => problem.path === `secrets.${path}`)),
      );
    }
  }
  return result;
}

function isSourceProblem({ path }: FileProblem): boolean {
  return path.startsWith('secrets.');
}

/** Replaces the service's message about a mask that has no stored value. */
function toAdvice(path: string, message: string): string {
  return message.includes('stands for a stored value') ? `no value is stored; ${formatSourceAdvice(path)}` : message;
}

async function planServer(
  client: RestClient,
  server: ReadyServer,
  label: string | undefined,
): Promise<Plan | { failure: FileProblem }> {
  try {
    return await client.run('planMcpServer', toPlanInput(server, label));
  } catch (error) {
    // Other errors, such as an unreachable service or a missing scope, are not about this file.
    if (!(error instanceof AppError) || !['invalid', 'tooLarge', 'notFound'].includes(error.kind)) throw error;
    const [firstProblem] = error.problems;
    return {
      failure: { at: server.at, path: firstProblem?.path ?? '', message: firstProblem?.message ?? error.message },
    };
  }
}

/** Builds the operation input with the desired state of a server. */
export function toPlanInput(server: ReadyServer, label: string | undefined): Input<'planMcpServer'> {
  const { slug, config, values, limits } = server;
  return {
    slug,
    config,
    ...(Object.keys(values).length > 0 && { secrets: values }),
    ...(limits && { limits }),
    ...(label !== undefined && { label }),
  } as Input<'planMcpServer'>;
}

export const results = ['created', 'changed', 'same', 'pruned', 'failed'] as const;
export type Result = (typeof results)[number];

/** Result for one server, as shown in the report. */
export type ServerOutcome = {
  slug: string;
  /** Absent for a pruned server. */
  file?: string;
  result: Result;
  changes: Plan['changes'];
  warnings: Plan['warnings'];
  /** Sources of secrets; only for a dry run. */
  secrets?: SecretSource[];
  /** Reason for a failure. */
  message?: string;
};

export type ApplySettings = { label?: string | undefined; overwrite?: boolean | undefined };

/** Returns the conflicts that are known before anything is changed. */
export function findConflicts(planned: readonly PlannedServer[], { label, overwrite }: ApplySettings): FileProblem[] {
  if (overwrite) return [];
  return planned.flatMap(({ server: { at }, plan }) => {
    if (plan.label !== undefined && label !== undefined && plan.label !== label) {
      const message = `the server belongs to the label ${plan.label}. Apply it with --label ${plan.label}, or take it over with --overwrite`;
      return [{ at, path: '', message }];
    }
    const conflictMessage = `the server was changed elsewhere since it was applied (version ${plan.applied_version}, now ${plan.version}), and the file would undo that. Update the file with ${programName} export --out, or apply with --overwrite`;
    return plan.undone.map((path) => ({ at, path, message: conflictMessage }));
  });
}

export function toPlannedOutcome({ server, plan }: PlannedServer): ServerOutcome {
  const { change: result, changes, warnings } = plan;
  return { slug: server.slug, file: server.at, result, changes, warnings };
}

/** Applies one server. Returns a failure as an outcome, so that the other servers are still applied. */
export async function applyServer(
  client: RestClient,
  planned: PlannedServer,
  { label, overwrite }: ApplySettings,
): Promise<ServerOutcome> {
  const { server, plan } = planned;
  const isUpToDate = plan.change === 'same' && plan.applied_version === plan.version;
  if (isUpToDate) return toPlannedOutcome(planned);
  try {
    const { change, changes, warnings } = await client.run('applyMcpServer', {
      ...toPlanInput(server, label),
      expected_version: plan.version,
      ...(overwrite && { overwrite }),
    } as Input<'applyMcpServer'>);
    return { slug: server.slug, file: server.at, result: change, changes, warnings };
  } catch (error) {
    return { ...toPlannedOutcome(planned), ...toFailure(error) };
  }
}

/** Lists servers with the label that no file describes. */
export async function findUnlistedServers(
  client: RestClient,
  label: string,
  slugs: ReadonlySet<string>,
): Promise<ListedServer[]> {
  return (await readServerList(client)).filter((server) => server.label === label && !slugs.has(server.slug));
}

/** Deletes a server that no file describes any more. Fails if the server has changed since it was listed. */
export async function pruneServer(client: RestClient, { slug, version }: ListedServer): Promise<ServerOutcome> {
  const outcome = { slug, changes: [], warnings: [] };
  try {
    await client.run('deleteMcpServer', { slug, expected_version: version });
    return { ...outcome, result: 'pruned' };
  } catch (error) {
    return { ...outcome, ...toFailure(error) };
  }
}

/** Converts an `AppError` to a failed outcome. @throws any other error */
function toFailure(error: unknown): { result: 'failed'; message: string } {
  if (!(error instanceof AppError)) throw error;
  const { message, problems } = error;
  const lines = problems.map(({ path, message: problem }) => (path === '' ? problem : `${path}: ${problem}`));
  return { result: 'failed', message: lines.length > 0 ? lines.join('; ') : message };
}
