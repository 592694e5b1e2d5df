import { z } from 'zod';
import { capturesPerServer, capturesPerWorkspace } from '../../store/calls/captures.ts';
import { setCapture } from '../../store/servers/servers.ts';
import { operation } from '../operation.ts';
import { noteChange } from '../servers/store-server.ts';
import { getServer, isCaptured, isoTime, isUnchanged, slugInput, time, unchangedShape } from '../shapes.ts';

const hourMs = 60 * 60_000;

const captureCalls = operation({
  name: 'captureCalls',
  summary: 'Capture what the calls of a hosted server send and get, for up to 24 hours',
  description: `getCall then shows them, without credentials, for a day at most: the newest ${capturesPerServer} of a server and ${capturesPerWorkspace} of a workspace.`,
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    hours: z.int().min(0).max(24).describe('For how long from now; 0 turns it off.'),
  }),
  output: z.object({
    slug: z.string(),
    capture_until: time.optional().describe('Absent when nothing is captured.'),
    unchanged: unchangedShape,
  }),
  async run(context, { slug, hours }) {
    const server = await getServer(context, slug);
    if (hours === 0 && !isCaptured(server, context.now())) return { slug, unchanged: true as const };
    const until = hours === 0 ? undefined : context.now() + hours * hourMs;
    await setCapture(context.db, server, until);
    await noteChange(context, server);
    return { slug, ...(until !== undefined && { capture_until: isoTime(until) }) };
  },
  isUnchanged,
  audit: ({ slug, hours }) => ({ target: slug, detail: { hours } }),
});

export const captureOperations = { captureCalls };
