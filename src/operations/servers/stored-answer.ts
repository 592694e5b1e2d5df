import { z } from 'zod';
import { summaryOf } from '../../store/servers/server-list.ts';
import type { Context } from '../operation.ts';
import { serverRecord, toRecord, unchangedShape, warningsShape } from '../shapes.ts';
import { mostSteps, nextSteps, type Stored, warningsFor } from './store-server.ts';

export const configOutput = z.record(z.string(), z.unknown()).describe('The configuration, secrets masked.');
export const stored = z.object({
  server: serverRecord,
  url: z.string().describe('Address of the MCP server.'),
  warnings: warningsShape,
  next_steps: z.array(z.string()).max(mostSteps).describe('What the person must still do.'),
  unchanged: unchangedShape,
});

/** Answer of every operation that stores a server. */
export async function storedAnswer(context: Context, { server, isUnchanged }: Stored): Promise<z.input<typeof stored>> {
  const warnings = await warningsFor(context, server);
  return {
    server: toRecord(server, summaryOf(server.config), context),
    url: context.serverUrl(server.slug),
    warnings,
    next_steps: nextSteps(context, server, warnings),
    ...(isUnchanged && { unchanged: true as const }),
  };
}

export function saidOf(verb: string) {
  return (output: z.input<typeof stored>): string =>
    [
      `${output.unchanged ? 'Nothing changes in' : verb} the server "${output.server.name}" (version ${output.server.version}) at ${output.url}`,
      `Access: ${output.server.access}. Tools: ${output.server.tool_count}.`,
      ...output.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
      ...output.next_steps.map((step) => `Next: ${step}`),
    ].join('\n');
}

export const auditStored = (_input: unknown, output: z.input<typeof stored>) => ({
  target: output.server.slug,
  detail: {
    version: output.server.version,
    name: output.server.name,
    tools: output.server.tool_count,
    access: output.server.access,
  },
});
