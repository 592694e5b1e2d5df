import { nearest } from '../domain/near-names.ts';
import { AppError } from '../errors.ts';
import { slugsAround } from '../store/servers.ts';
import type { Context } from './operation.ts';

const lists = '; listMcpServers (bin/toolhost servers list) lists them';

/** The same for a server of another workspace as for none. Only slugs that the actor may see are named. */
export function unknownServer(slug: string, visible: readonly string[]): AppError {
  return new AppError('notFound', `there is no such server in this workspace${nearest(slug, visible, lists)}`);
}

/** What to do instead of naming a server that is not there. */
export async function insteadOf(context: Pick<Context, 'db' | 'actor'>, slug: string): Promise<string> {
  return nearest(slug, await visibleAround(context, slug), lists);
}

/** The slugs that the actor may see, at least those that are likely to be meant. */
export async function visibleAround(
  { db, actor }: Pick<Context, 'db' | 'actor'>,
  slug: string,
): Promise<readonly string[]> {
  return actor.servers?.filter((own) => own !== slug) ?? slugsAround(db, actor.workspaceId, slug);
}
