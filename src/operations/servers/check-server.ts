import { z } from 'zod';
import { accessKinds } from '../../domain/config/access.ts';
import { serverConfigSchema } from '../../domain/config/server-config.ts';
import { covers } from '../../domain/credentials/scopes.ts';
import type { Quotas } from '../../domain/quotas.ts';
import { slugPattern } from '../../domain/slug.ts';
import { findSetQuotas } from '../../store/quotas.ts';
import { isSlugTaken } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import { tooManyTools } from '../quotas/quota-rules.ts';
import { firstWarnings, problemsShape, warningsShape } from '../shapes.ts';
import { reportOn } from './check-config.ts';
import { takenSentence } from './store-server.ts';

const createScope = 'manage:write';

export const checkMcpServer = operation({
  name: 'checkMcpServer',
  summary: 'Check a configuration without storing it',
  description: 'Returns every problem and every warning that creating or updating would report.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: serverConfigSchema,
  validatesInput: true,
  output: z.object({
    valid: z.boolean(),
    problems: problemsShape,
    warnings: warningsShape,
    access: z.enum(accessKinds).optional(),
    slug_taken: z
      .string()
      .optional()
      .describe(
        'Why no server can be created with this slug; an existing server of the workspace can be updated all the same. Only said to whoever may create servers.',
      ),
  }),
  async run(context, input) {
    const { facts, problems, warnings } = await reportOn(context, input);
    const excess = facts && tooManyTools(facts.tools, await quotasOf(context));
    if (excess !== undefined) return { valid: false, problems: [{ path: 'tools', message: excess }], warnings: [] };
    const slug_taken = await whyTaken(context, (input as { slug?: unknown }).slug);
    const known = slug_taken === undefined ? {} : { slug_taken };
    if (!facts) return { valid: false, problems: [...problems], warnings: [], ...known };
    return { valid: true, problems: [], warnings: firstWarnings(warnings), access: facts.access, ...known };
  },
});

async function quotasOf({ db, actor, defaultQuotas }: Context): Promise<Quotas> {
  return { ...defaultQuotas, ...(await findSetQuotas(db, actor.workspaceId)) };
}

/** Only for actors that may create servers: to others it would reveal servers that they may not see. */
async function whyTaken(context: Context, slug: unknown): Promise<string | undefined> {
  const { scopes, servers } = context.actor;
  const mayCreate = covers(scopes, createScope) && servers === undefined;
  if (!mayCreate || typeof slug !== 'string' || !slugPattern.test(slug)) return undefined;
  return (await isSlugTaken(context.db, slug)) ? takenSentence(context, slug) : undefined;
}
