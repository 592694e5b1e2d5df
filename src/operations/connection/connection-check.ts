import { z } from 'zod';
import { findGrants } from '../../store/logins/grants.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { operation, servingOf } from '../operation.ts';
import { getServer, slugInput } from '../shapes.ts';
import { connectionChecks } from './connection-rules.ts';

const checkConnection = operation({
  name: 'checkConnection',
  summary: 'Play what clients such as Claude, ChatGPT, Cursor and VS Code do first, and say which will fail and why',
  description: 'Nothing is sent to the upstream or to the provider.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({
    checks: z
      .array(
        z.object({
          id: z.string(),
          title: z.string(),
          status: z.enum(['ok', 'warning', 'problem']),
          detail: z.string(),
          clients: z.array(z.string()).max(50).describe('Clients that it concerns.'),
        }),
      )
      .max(50),
  }),
  async run(context, { slug }) {
    const { db, actor } = context;
    const server = await getServer(context, slug);
    const logins = await findGrants(db, actor.workspaceId, { slug, slugs: undefined }, { limit: 1, after: undefined });
    const checks = await connectionChecks({
      config: server.config,
      probe: await servingOf(context).probeConnection(slug),
      address: context.serverUrl(slug),
      hostAddress: context.ownAddress(slug),
      callbackUrl: context.callbackUrl(slug),
      secrets: await findSecrets(db, server),
      hasLogins: logins.rows.length > 0,
    });
    return { checks };
  },
});

export const connectionOperations = { checkConnection };
