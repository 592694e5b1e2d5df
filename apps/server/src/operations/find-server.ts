import { AppError } from '@toolhost/errors/errors';
import {
  createSuggestionBudget,
  formatNames,
  maxNamesInMessage,
  type SuggestionBudget,
  suggestNearest,
  suggestNearestOrList,
} from '@toolhost/errors/problems';
import { findNeighboringSlugs, findServer, type StoredServer } from '../store/servers/servers.ts';
import { programName } from '../version.ts';
import type { Context } from './operation.ts';

/** Returns a server of the actor's workspace. @throws AppError notFound, also for a server of another workspace */
export async function getServer(context: Context, slug: string): Promise<StoredServer> {
  const server = await findWorkspaceServer(context, slug);
  if (!server) throw await createUnknownServerError(context, slug);
  return server;
}

/** Finds a server of the workspace. Waits for memory before it reads a long configuration. @throws AppError tooMany */
export function findWorkspaceServer(
  { db, actor, reserveMemory }: Pick<Context, 'db' | 'actor' | 'reserveMemory'>,
  slug: string,
): Promise<StoredServer | undefined> {
  return findServer(db, actor.workspaceId, slug, reserveMemory);
}

type SlugContext = Pick<Context, 'db' | 'actor'>;

const noSuchServer = 'there is no such server in this workspace';

/**
 * Creates the error for an unknown slug, which is identical for a missing server and a server of another workspace. It
 * names only slugs that the actor may see.
 */
async function createUnknownServerError(context: SlugContext, slug: string): Promise<AppError> {
  return new AppError('notFound', noSuchServer + (await suggestSlugs(context, slug, createSuggestionBudget())));
}

/** Creates the error for a key that is limited to some servers. To that key, no other servers exist. */
export function createOutsideLimitsError(limits: readonly string[], slug: string): AppError {
  return new AppError('notFound', noSuchServer + describeSlugLimits(limits, slug, createSuggestionBudget()));
}

/** Returns advice for an unknown slug: similar slugs, or how to list them. */
export async function suggestSlugs(
  { db, actor }: SlugContext,
  slug: string,
  suggestionBudget: SuggestionBudget,
): Promise<string> {
  if (actor.servers) return describeSlugLimits(actor.servers, slug, suggestionBudget);
  const neighbors = await findNeighboringSlugs(db, actor.workspaceId, slug);
  if (neighbors.length <= maxNamesInMessage) return suggestNearestOrList(slug, neighbors.toSorted(), suggestionBudget);
  return suggestNearest(slug, neighbors, suggestionBudget, `; listMcpServers (${programName} servers list) lists them`);
}

function describeSlugLimits(limits: readonly string[], slug: string, suggestionBudget: SuggestionBudget): string {
  if (limits.length === 0) return '; the credential is limited to views and can only call their tools over MCP';
  const alternatives = limits.filter((allowed) => allowed !== slug);
  return suggestNearest(slug, alternatives, suggestionBudget, `; the credential is limited to: ${formatNames(limits)}`);
}
