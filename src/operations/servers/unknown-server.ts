import {
  type Guesses,
  listed,
  mostNamed,
  nearest,
  nearestOrAll,
  newGuesses,
} from '../../domain/problems/did-you-mean.ts';
import { AppError } from '../../errors.ts';
import { slugsAround } from '../../store/servers/servers.ts';
import { programName } from '../../version.ts';
import type { Context } from '../operation.ts';

type Asking = Pick<Context, 'db' | 'actor'>;

const noServer = 'there is no such server in this workspace';

/** The error is the same for a server of another workspace as for a missing one. It names only slugs that the actor may see. */
export async function unknownServer(context: Asking, slug: string): Promise<AppError> {
  return new AppError('notFound', noServer + (await insteadOf(context, slug, newGuesses())));
}

/** The error for a key that is limited to some servers: for it no others exist. */
export function serverOutsideOf(limits: readonly string[], slug: string): AppError {
  return new AppError('notFound', noServer + withinLimits(limits, slug, newGuesses()));
}

/** Advice for an unknown slug: similar slugs, or how to list them. */
export async function insteadOf({ db, actor }: Asking, slug: string, guesses: Guesses): Promise<string> {
  if (actor.servers) return withinLimits(actor.servers, slug, guesses);
  const around = await slugsAround(db, actor.workspaceId, slug);
  if (around.length <= mostNamed) return nearestOrAll(slug, around.toSorted(), guesses);
  return nearest(slug, around, guesses, `; listMcpServers (${programName} servers list) lists them`);
}

function withinLimits(limits: readonly string[], slug: string, guesses: Guesses): string {
  if (limits.length === 0) return '; the credential is limited to views, and only calls their tools over MCP';
  const others = limits.filter((own) => own !== slug);
  return nearest(slug, others, guesses, `; the credential is limited to: ${listed(limits)}`);
}
