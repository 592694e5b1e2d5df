import { AppError } from '../../errors.ts';
import type { Input } from '../../operations/index.ts';
import { type ListedServer, listedServers } from '../connection/pages.ts';
import type { RestClient } from '../connection/rest-client.ts';
import { type Plan, type PlannedServer, wantedOf } from './plan-files.ts';
import type { FileProblem } from './read-files.ts';
import type { SecretSource } from './secret-values.ts';

export const results = ['created', 'changed', 'same', 'pruned', 'failed'] as const;
export type Result = (typeof results)[number];

/** Result of one server, as the report shows it. */
export type ServerOutcome = {
  slug: string;
  /** Absent for a pruned server. */
  file?: string;
  result: Result;
  changes: Plan['changes'];
  warnings: Plan['warnings'];
  /** Sources of secrets; only of a run that changes nothing. */
  secrets?: SecretSource[];
  /** Reason of a failure. */
  message?: string;
};

export type Applying = { label?: string | undefined; overwrite?: boolean | undefined };

/** What is known before anything is changed to end in a conflict. */
export function conflictsOf(planned: readonly PlannedServer[], { label, overwrite }: Applying): FileProblem[] {
  if (overwrite) return [];
  return planned.flatMap(({ server: { at }, plan }) => {
    if (plan.label !== undefined && label !== undefined && plan.label !== label) {
      const message = `the server belongs to the label ${plan.label}; apply it with --label ${plan.label}, or take it over with --overwrite`;
      return [{ at, path: '', message }];
    }
    const since = `the server was changed elsewhere since it was applied (version ${plan.applied_version}, now ${plan.version}), and the file would undo that; take the change into the file with toolhost export --out, or apply with --overwrite`;
    return plan.undone.map((path) => ({ at, path, message: since }));
  });
}

/** The report of a run that changes nothing. */
export function plannedOutcome({ server, plan }: PlannedServer): ServerOutcome {
  const { change: result, changes, warnings } = plan;
  return { slug: server.slug, file: server.at, result, changes, warnings };
}

/** Makes the service match. A failure of one server does not keep the others from being applied. */
export async function applyServer(
  client: RestClient,
  planned: PlannedServer,
  { label, overwrite }: Applying,
): Promise<ServerOutcome> {
  const { server, plan } = planned;
  const isDone = plan.change === 'same' && plan.applied_version === plan.version;
  if (isDone) return plannedOutcome(planned);
  try {
    const { change, changes, warnings } = await client.run('applyMcpServer', {
      ...wantedOf(server, label),
      expected_version: plan.version,
      ...(overwrite && { overwrite }),
    } as Input<'applyMcpServer'>);
    return { slug: server.slug, file: server.at, result: change, changes, warnings };
  } catch (error) {
    return { ...plannedOutcome(planned), ...failureOf(error) };
  }
}

/** Servers with this label that no file describes. */
export async function strayServers(
  client: RestClient,
  label: string,
  slugs: ReadonlySet<string>,
): Promise<ListedServer[]> {
  return (await listedServers(client)).filter((server) => server.label === label && !slugs.has(server.slug));
}

/** Deletes a server that no file describes any more, unless it was changed since it was listed. */
export async function pruneServer(client: RestClient, { slug, version }: ListedServer): Promise<ServerOutcome> {
  const outcome = { slug, changes: [], warnings: [] };
  try {
    await client.run('deleteMcpServer', { slug, expected_version: version });
    return { ...outcome, result: 'pruned' };
  } catch (error) {
    return { ...outcome, ...failureOf(error) };
  }
}

/** @throws the error itself where it is no answer of the service */
function failureOf(error: unknown): { result: 'failed'; message: string } {
  if (!(error instanceof AppError)) throw error;
  const { message, problems } = error;
  const lines = problems.map(({ path, message: what }) => (path === '' ? what : `${path}: ${what}`));
  return { result: 'failed', message: lines.length > 0 ? lines.join('; ') : message };
}
